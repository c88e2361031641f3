"""The experiments for a GPU (tests/gpu): what they say of a prior, and a dry run of all of them on the processor."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GPU = os.path.join(ROOT, "tests", "gpu")
PYTHON = os.path.join(ROOT, "build", "chatterbox", "bin", "python")
sys.path.insert(0, GPU)
sys.dont_write_bytecode = True

import experiments  # noqa: E402
import prior  # noqa: E402


def report(off: float = 0.0) -> dict:
    """Batches of .2 + .04 x longest + .0017 x sum seconds and 3.5 + .21 x b GiB; OFF: how wrong every second one is."""
    points = []
    for b in (1, 2, 4, 8, 16, 32):
        for longest in (40, 90, 150):
            total = longest + (b - 1) * (longest - 7)
            points.append({"b": b, "longest": longest, "sum": total, "seconds": 0.2 + 0.04 * longest + 0.0017 * total})
    for p in points[1::2]:
        p["seconds"] *= 1 + off
    points.append({"b": 64, "longest": 150, "sum": 9000, "out_of_memory": True})
    memory = [{"b": b, "peak_gib": 3.5 + 0.21 * b} for b in (1, 2, 4, 8, 16)]
    return {"note": "random weights, shape twin", "small": False, "facts": {"result": {"card": "a card", "driver": "1", "torch": "2"}},
            "experiments": {"E9": {"result": {"regular": {"points": points}}}, "E5": {"result": {"regular": {"points": memory}}}}}


class Prior(unittest.TestCase):
    def test_terms_are_found_again(self) -> None:
        found = prior.prior(report(), "regular")
        for key, value in {"once_s": 0.2, "longest_s": 0.04, "each_s": 0.0017, "base_gib": 3.5, "each_gib": 0.21}.items():
            self.assertAlmostEqual(found[key], value, delta=value * 1e-6, msg=key)
        self.assertLess(found["time_residual"], 1e-6)

    def test_the_residual_is_that_of_the_points_that_were_not_fitted(self) -> None:
        found = prior.prior(report(off=0.25), "regular")
        self.assertAlmostEqual(found["longest_s"], 0.04, delta=1e-6)
        self.assertAlmostEqual(found["time_residual"], 0.2, delta=1e-6)

    def test_nothing_is_negative(self) -> None:
        points = [((1.0, float(x)), 10.0 - x) for x in range(8)]
        terms, _ = prior.fit(points)
        self.assertEqual(terms[1], 0.0)
        self.assertGreater(terms[0], 0)

    def test_what_failed_is_said(self) -> None:
        broken = report()
        broken["experiments"]["E5"] = {"error": "RuntimeError: no"}
        text = prior.text(broken, "regular")
        self.assertIn("memory: none (not in the file: 'result')", text)
        self.assertIn(".longest_s = 0.04", text)
        self.assertIn("time: none", prior.text(broken, "turbo"))
        with self.assertRaisesRegex(ValueError, "too few"):
            prior.fit([((1.0, 1.0), 1.0)] * 3)


class Apart(unittest.TestCase):
    def test_one_that_fails_is_told_and_ends_nothing(self) -> None:
        self.assertEqual(experiments.apart(lambda: 3, 60), {"result": 3})
        self.assertEqual(experiments.apart(lambda: os.kill(os.getpid(), 9), 60), {"error": "ended by SIGKILL"})
        self.assertEqual(experiments.apart(lambda: os._exit(4), 60), {"error": "ended with status 4 and said nothing"})
        self.assertEqual(experiments.apart(lambda: __import__("time").sleep(60), 1), {"error": "did not end within 1 s"})


class Parent(unittest.TestCase):
    def test_it_imports_nothing_that_opens_a_card(self) -> None:
        """A forked process cannot use a card that its parent has opened."""
        said = subprocess.run([PYTHON if os.path.exists(PYTHON) else sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); import experiments\n"
                               "try: experiments.main()\nexcept SystemExit: pass\n"
                               "print(sorted({'torch', 'twin', 'measures', 'chatterbox'} & sys.modules.keys()))",
                               GPU, "--device", "cpu", "--small", "--only", "E1", "--out", os.devnull],
                              capture_output=True, text=True)
        self.assertEqual(said.stdout.splitlines()[-1:], ["[]"], said.stderr[-2000:])


class DryRun(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(PYTHON), "build/chatterbox is not there: make chatterbox-packages")
    def test_every_experiment_runs_on_a_processor(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "dry.json")
            ran = subprocess.run([PYTHON, os.path.join(GPU, "experiments.py"), "--device", "cpu", "--small", "--out", out],
                                 capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            self.assertEqual(ran.returncode, 0, ran.stderr[-4000:])
            with open(out, encoding="utf-8") as f:
                found = json.load(f)
            said = subprocess.run([sys.executable, os.path.join(GPU, "prior.py"), out], capture_output=True, text=True)
        self.assertEqual((found["note"], found["small"]), ("random weights, shape twin", True))
        self.assertEqual(sorted(found["experiments"]), [f"E{i}" for i in range(1, 10)])
        result = {name: e["result"] for name, e in found["experiments"].items()}
        self.assertTrue(all(p["step_ms"] > 0 for name in ("E1", "E2") for p in result[name]["points"]))
        for name in ("E1", "E2"):
            graphs = [p for p in result[name]["points"] if p["mode"] == "graph"]
            self.assertEqual(2 * len(graphs), len(result[name]["points"]))
            self.assertTrue(all(p["recorded"] and p["replayed"] for p in graphs), graphs)
        self.assertEqual({p["precision"] for p in result["E3"]["points"]}, {"fp32", "tf32", "bf16"})
        self.assertTrue(result["E6"]["ran_out"] and result["E6"]["next_batch_fits"])
        for kind in ("regular", "turbo"):
            same = result["E7"][kind]
            self.assertEqual((same["equal"], same["equal_with_graphs"]), (same["b"], same["b"]))
        self.assertIn("A DRY RUN", said.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
