"""The harness of the Python workers with a fake engine, as the agent runs it: a process that reads and writes lines."""
from __future__ import annotations

import gc
import hashlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest
import wave
import weakref
from typing import Any, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "jobs", "workers")
sys.path.insert(0, WORKERS)
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

import burst_audio  # noqa: E402
import burst_device  # noqa: E402
import burst_engine  # noqa: E402
import burst_probe  # noqa: E402
import burst_render  # noqa: E402
import burst_words  # noqa: E402
import engine_kokoro  # noqa: E402

LIMIT_S = 60


class Worker:
    """A worker process; its lines are read beside, so that a silent one cannot hold a test for ever."""

    def __init__(self, *arguments: str, **env: Any) -> None:
        self.out = tempfile.TemporaryDirectory()
        self.log_file = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(WORKERS, "burst_worker.py"), os.path.join(HERE, "engine_fake.py"), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log_file, text=True,
            env={**os.environ, "BURST_OUT": self.out.name, "HOME": self.out.name, **{k: str(v) for k, v in env.items()}})
        self.lines: queue.Queue[Optional[dict[str, Any]]] = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.hello = self.next()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def next(self) -> dict[str, Any]:
        return self.lines.get(timeout=LIMIT_S) or {}

    def batch(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        """What it says to a batch, up to its last line."""
        self.process.stdin.write(json.dumps({"batch": "b1", "segments": tasks}) + "\n")
        self.process.stdin.flush()
        said = []
        while not said or "segment" in said[-1]:
            said.append(self.next())
        return said

    def log(self) -> str:
        self.log_file.seek(0)
        return self.log_file.read()

    def timings(self) -> list[dict[str, Any]]:
        return [json.loads(line)["timing"] for line in self.log().splitlines() if line.startswith('{"timing"')]

    def wait(self) -> int:
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log_file.close()
        self.out.cleanup()


def task(name: str, text: str = "some text", **more: Any) -> dict[str, Any]:
    return {"id": name, "file": f"{name}.wav", "text": text, "seed": 5, **more}


def verdicts(said: list[dict[str, Any]]) -> dict[str, Any]:
    """"yes" or the error of each segment."""
    return {line["segment"]: "yes" if line["ok"] else line["error"] for line in said if "segment" in line}


class Protocol(unittest.TestCase):
    def test_hello_and_a_batch(self) -> None:
        with Worker() as worker:
            self.assertEqual(worker.hello["engine"], "fake")
            self.assertEqual(worker.hello["batching"], "padded")
            self.assertEqual(list(worker.hello["phases"]), ["import_s", "build_s", "warm_up_s", "probe_s"])
            self.assertTrue(all(0 <= seconds < LIMIT_S for seconds in worker.hello["phases"].values()))
            self.assertEqual((worker.hello["sample_rate"], worker.hello["max_batch"], worker.hello["gpu"]), (8000, 64, False))
            said = worker.batch(task("a"), task("b", "a longer text than the other one"))
            self.assertEqual(verdicts(said), {"a": "yes", "b": "yes"})
            self.assertEqual(said[-1], {"batch": "b1", "done": True})
            with wave.open(f"{worker.out.name}/b.wav") as f:
                self.assertEqual((f.getnchannels(), f.getsampwidth(), f.getframerate()), (1, 2, 8000))
                self.assertAlmostEqual(f.getnframes() / 8000, 32 / 15, 2)
            self.assertEqual([f for f in os.listdir(worker.out.name) if f.endswith(".tmp")], [])
            timing = worker.timings()[-1]
            self.assertEqual((timing["b"], timing["characters"]), (2, 41))
            self.assertEqual(worker.wait(), 0)

    def test_what_a_library_prints_is_log(self) -> None:
        with Worker() as worker:
            worker.batch(task("a"))
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import burst_wire, os; w = burst_wire.Wire(); print('noise'); "
                "os.system('echo child'); w.say(a=1)")
        done = subprocess.run([sys.executable, "-c", code, WORKERS], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, '{"a": 1}\n')
        self.assertIn("noise", done.stderr)
        self.assertIn("child", done.stderr)

    def test_heartbeat_while_it_loads(self) -> None:
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import burst_wire, time\n"
                "with burst_wire.heartbeat('loading', 0.02): time.sleep(0.3)")
        done = subprocess.run([sys.executable, "-c", code, WORKERS], capture_output=True, text=True, check=True)
        self.assertGreater(done.stderr.count("loading: "), 2)

    def test_pins(self) -> None:
        with Worker("--pin", "no-such-package==1.0") as worker:
            self.assertEqual(worker.hello["error"], "no-such-package is not installed here; this engine needs 1.0")
        with Worker("--pin", "weights==ffff") as worker:
            self.assertIn("the weights are 0123456789abcdef here", worker.hello["error"])
        with Worker("--pin", "weights==0123") as worker:
            self.assertNotIn("error", worker.hello)


class Heard(unittest.TestCase):
    """job.check.words, with a stand-in of the transcriber in the place where the set-up puts the real one."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.env = {"BURST_ENV": folder.name, "BURST_WORDS": "tiny.en", "SPELL": 1}
        os.makedirs(f"{folder.name}/words/model")
        os.symlink(os.path.join(HERE, "words_stand_in"), f"{folder.name}/words/packages")

    def render(self, *tasks: dict[str, Any], **env: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
        with Worker(**{**self.env, **env}) as worker:
            said = verdicts(worker.batch(*tasks))
            files = {}
            for name in os.listdir(worker.out.name):
                if name.endswith(".wav"):
                    with open(os.path.join(worker.out.name, name), "rb") as f:
                        files[name[:-4]] = f.read()
            self.timing = worker.timings()[-1]
            self.text = worker.log()
        return said, files

    def test_each_file_has_its_own_transcript(self) -> None:
        texts = {f"s{i}": f"this is line number {i}, with  words" for i in range(20)}
        said, files = self.render(*(task(name, text, language="en") for name, text in texts.items()))
        self.assertEqual(set(said.values()), {"yes"})
        for name, text in texts.items():
            heard = " ".join(text.split()).encode()
            self.assertTrue(files[name].endswith(b"hear" + len(heard).to_bytes(4, "little") + heard + bytes(len(heard) % 2)), name)
            self.assertEqual(int.from_bytes(files[name][4:8], "little"), len(files[name]) - 8)
        self.assertIn("hear_ms", self.timing)

    def test_other_words_are_heard_as_they_are(self) -> None:
        _, files = self.render(task("a", "one two"), task("b", "bad text"), FAULTS="bad:garbled")
        self.assertIn(b"quite another thing was said", files["b"])
        self.assertIn(b"one two", files["a"])

    def test_a_file_that_cannot_be_heard_has_no_transcript(self) -> None:
        said, files = self.render(task("a", "one"), task("b", "two"), DEAF_TO="one")
        self.assertEqual(said, {"a": "yes", "b": "yes"})
        self.assertNotIn(b"hear", files["a"])
        self.assertIn(b"hear\3\0\0\0two", files["b"])
        self.assertIn("words: a file could not be heard: RuntimeError: nothing is heard here", self.text)

    def test_without_the_key_nothing_is_heard(self) -> None:
        _, files = self.render(task("a", "one"), BURST_WORDS="")
        self.assertNotIn(b"hear", files["a"])
        self.assertNotIn("hear_ms", self.timing)

    def test_a_missing_transcriber_is_named_before_anything_is_rendered(self) -> None:
        with Worker(**{**self.env, "BURST_ENV": "/nowhere"}) as worker:
            self.assertIn("Python has no module faster_whisper: the engine's set-up is incomplete", worker.hello["error"])


class Tasks(unittest.TestCase):
    def test_what_is_wrong_is_named_before_anything_is_rendered(self) -> None:
        with Worker() as worker:
            said = worker.batch(task("good"), task("voice", voice="ana"), task("name", options={"sped": 1}),
                                task("type", options={"speed": "fast"}), task("range", options={"speed": 9}),
                                task("whole", options={"steps": 2.5}), task("seed", seed=None), task("minus", seed=-1), task("text", text=""))
            self.assertEqual(verdicts(said), {
                "good": "yes",
                "voice": "unknown voice 'ana', did you mean 'anna'?",
                "name": "unknown option 'sped', did you mean 'speed'?",
                "type": "option speed must be a number from 0.25 to 4, not 'fast'",
                "range": "option speed must be a number from 0.25 to 4, not 9",
                "whole": "option steps must be a whole number from 1 to 20, not 2.5",
                "seed": "seed must be a whole number from 0, not None",
                "minus": "seed must be a whole number from 0, not -1",
                "text": "text must be a text, not ''"})
            self.assertEqual(said[-2]["segment"], "good")

    def test_a_result_depends_on_text_and_seed_alone(self) -> None:
        tasks = [task(f"s{i}", "word " * (1 + i * 7 % 5), seed=i) for i in range(6)]
        with Worker() as worker:
            together = {line["segment"]: line["sha256"] for line in worker.batch(*tasks) if "sha256" in line}
            other_order = {line["segment"]: line["sha256"] for line in worker.batch(*tasks[::-1]) if "sha256" in line}
            alone = {t["id"]: worker.batch(t)[0]["sha256"] for t in tasks}
        self.assertEqual(together, alone)
        self.assertEqual(together, other_order)
        self.assertEqual(len(set(alone.values())), 6)


class Faults(unittest.TestCase):
    def test_a_bad_row_is_rendered_again_alone(self) -> None:
        for fault in ("nan", "empty", "runaway"):
            with self.subTest(fault), Worker(FAULTS=f"bad:{fault}?") as worker:
                said = worker.batch(task("a"), task("b", "a bad one"), task("c"))
                self.assertEqual(verdicts(said), {"a": "yes", "b": "yes", "c": "yes"})
                self.assertEqual(worker.timings()[-1]["retried"], 1)

    def test_a_row_that_stays_bad_is_reported(self) -> None:
        words = {"nan": "the sound has samples that are no numbers", "empty": "no sound came out",
                 "runaway": "it did not end within its cap", "error": "ValueError: this text cannot be spoken"}
        for fault, why in words.items():
            with self.subTest(fault), Worker(FAULTS=f"bad:{fault}") as worker:
                said = worker.batch(task("a"), task("b", "a bad one"), task("c"))
                self.assertEqual(verdicts(said), {"a": "yes", "b": why, "c": "yes"})
                self.assertEqual(said[-1], {"batch": "b1", "done": True})

    def test_out_of_memory_halves_the_sound_first(self) -> None:
        with Worker(CARD=10, BASE=2, SLOPE=0.1, WAVE_SLOPE=2.5) as worker:
            self.assertEqual(set(verdicts(worker.batch(*(task(f"s{i}") for i in range(8)))).values()), {"yes"})
            self.assertIn("out of memory with the sound of 8 segments: 4 at once", worker.log())
            self.assertIn("out of memory with the sound of 4 segments: 2 at once", worker.log())

    def test_out_of_memory_halves_the_batch(self) -> None:
        with Worker(FAULTS="big:oom!") as worker:
            self.assertEqual(set(verdicts(worker.batch(task("a"), task("b", "a big one"))).values()), {"yes"})
            self.assertIn("out of memory with 2 segments: in two halves", worker.log())
            self.assertEqual(worker.log().count("what was kept is forgotten"), 1)

    def test_out_of_memory_that_halves_do_not_cure(self) -> None:
        with Worker(FAULTS="big:oom") as worker:
            said = worker.batch(task("a", "the longest comes first, and is rendered with its half"), task("b", "a big one"))
            self.assertEqual(verdicts(said), {"a": "yes"})
            self.assertIs(said[-1]["oom"], True)
            self.assertEqual(verdicts(worker.batch(task("c"))), {"c": "yes"})

    def test_the_gpu_is_lost(self) -> None:
        with Worker(FAULTS="bad:cuda") as worker:
            said = worker.batch(task("a"), task("b", "a bad one"))
            self.assertEqual(said, [{}])
            self.assertEqual(worker.process.wait(LIMIT_S), 1)
            self.assertIn("the GPU is lost: RuntimeError: CUDA error: an illegal memory access", worker.log())

    def test_a_torch_without_kernels_for_the_card(self) -> None:
        with Worker(CARD=32, ARCH="sm_80 sm_90") as worker:
            self.assertIn("has no kernels for Fake 5090 (sm_120; it has sm_80 sm_90)", worker.hello["error"])
            self.assertEqual(worker.hello["unfit"], "card")
            self.assertEqual(worker.wait(), 1)

    def test_a_card_that_is_too_small(self) -> None:
        with Worker(CARD=4, BASE=3.9, SLOPE=0.5) as worker:
            self.assertIn("the model does not fit", worker.hello["error"])
            self.assertEqual(worker.hello["unfit"], "memory")

    def test_a_gpu_lost_while_it_loads_ends_the_process_without_a_word(self) -> None:
        """A hello with an error would be final: another process may load."""
        with Worker(LOST=1) as worker:
            self.assertEqual(worker.hello, {})
            self.assertEqual(worker.wait(), 1)
            self.assertIn("the GPU is lost: CUDA error: unspecified launch failure", worker.log())


class Timing(unittest.TestCase):
    def test_what_a_batch_took_is_in_its_line(self) -> None:
        with Worker(ONCE=0.05, LONGEST=0.002, EACH=0.0005) as worker:
            worker.batch(*(task(f"s{i}", "x" * (20 + 10 * i)) for i in range(4)))
            timing = worker.timings()[-1]
            least = 1000 * (0.05 + 0.002 * 50 + 0.0005 * 140)
            self.assertGreaterEqual(timing["tokens_ms"], int(least))
            self.assertGreaterEqual(timing["total_ms"], timing["tokens_ms"])


class Probe(unittest.TestCase):
    def test_fit(self) -> None:
        for free, base, slope, most, want in ((24, 3, 0.5, 64, 32), (24, 3, 0.5, 16, 16), (8, 3.2, 0.25, 64, 16), (80, 3, 0.2, 128, 128),
                                              (3, 3, 0.5, 64, 0), (4, 3, 0.5, 64, 1), (24, 3, 0, 48, 48)):
            self.assertEqual(burst_probe.fit(free, base, slope, most), want, (free, base, slope, most))

    def test_hello_says_what_fits_and_how_that_is_kept(self) -> None:
        card = {"CARD": 24, "BASE": 3, "SLOPE": 0.5}
        with Worker(**card) as worker, tempfile.TemporaryDirectory() as folder:
            self.assertEqual((worker.hello["max_batch"], worker.hello["gpu"]), (32, "Fake 5090"))
            self.assertIn("memory: 3.00 GiB + 0.500 GiB a segment of 24.0 GiB: batches of 32", worker.log())
            measured = worker.hello["probe"]
            self.assertEqual(measured["max_batch"], 32)
            for wanted in ("fake", "Fake 5090 24.0 GiB", "driver 570.86.15", "torch 2.8.0"):
                self.assertIn(wanted, measured["key"])
            list_ = os.path.join(folder, "probe.jsonl")
            known = {**measured, "max_batch": 24}
            for lines, extra, most, probes in (
                    ([known], {}, 24, False),  # another number than it would measure: it was read
                    ([{**known, "max_batch": 8}, known], {}, 24, False),
                    ([{**known, "max_batch": 1000}], {}, 64, False),  # never more than the engine takes
                    ([known], {"DRIVER": "575.51.02"}, 32, True), ([known], {"TORCH": "2.9.0"}, 32, True),
                    ([known], {"CARD": 12}, 16, True), ([known], {"BURST_WORKERS": 2}, 16, True),
                    ([{**known, "max_batch": "24"}, {**known, "max_batch": 0}, {**known, "max_batch": True}, [1], "x"], {}, 32, True)):
                with open(list_, "w", encoding="utf-8") as f:
                    f.write("no JSON\n" + "".join(json.dumps(line) + "\n" for line in lines))
                with self.subTest(lines=lines, extra=extra), Worker(**{**card, **extra}, BURST_PROBE=list_) as again:
                    self.assertEqual((again.hello["max_batch"], "probe" in again.hello), (most, probes))
                    self.assertEqual("GiB a segment" in again.log(), probes)

    def test_what_a_rehearsal_did_not_allocate_counts_too(self) -> None:
        with Worker(CARD=24, BASE=3, SLOPE=0.25, HELD=0.25) as worker:
            self.assertEqual(worker.hello["max_batch"], 32)
            self.assertIn("memory: 3.00 GiB + 0.500 GiB a segment", worker.log())
            self.assertIn("no batch will have more than 32", worker.log())

    def test_several_workers_share_the_card(self) -> None:
        with Worker(CARD=24, BASE=3, SLOPE=0.5, BURST_WORKERS=2) as worker:
            self.assertEqual(worker.hello["max_batch"], 16)


class Device(unittest.TestCase):
    def test_language_models_compute_in_bfloat16(self) -> None:
        torch, asked = FakeTorch(), []
        torch.set_float32_matmul_precision, torch.bfloat16 = asked.append, "half"
        where, number, device = burst_device.in_bfloat16(torch)
        self.assertEqual((where, number, asked), ("cuda", "half", ["high"]))
        self.assertIsNone(device.self_test())

    def test_the_version_of_the_driver(self) -> None:
        said = "NVRM version: NVIDIA UNIX {}x86_64 Kernel Module  {}  Thu Jan 16 21:13:05 UTC 2025\nGCC version: gcc version 12.2.0\n"
        for text, version in ((said.format("", "535.183.01"), "535.183.01"),
                              (said.format("Open Kernel Module for ", "570.86.15").replace(" Kernel Module  ", "  "), "570.86.15"),
                              ("no such words", ""), (None, "")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "version")
                if text is not None:
                    with open(path, "w", encoding="utf-8") as f:
                        f.write(text)
                self.assertEqual(burst_device.driver_version(path), version)

    def test_kernels(self) -> None:
        has = burst_device.has_kernels
        self.assertTrue(has(["sm_80"], 8, 0))
        self.assertTrue(has(["sm_80"], 8, 9))
        self.assertFalse(has(["sm_89"], 8, 6))
        self.assertFalse(has(["sm_50", "sm_80", "sm_90"], 12, 0))
        self.assertTrue(has(["sm_90", "compute_90"], 12, 0))
        self.assertFalse(has(["sm_90a"], 9, 1))
        self.assertTrue(has(["sm_90a"], 9, 0))
        self.assertTrue(has(["sm_120"], 12, 0))

    def test_kinds_of_errors(self) -> None:
        class OutOfMemoryError(RuntimeError):
            pass

        for error, kind in ((MemoryError(), "memory"), (OutOfMemoryError("x"), "memory"),
                            (RuntimeError("CUDA out of memory. Tried to allocate"), "memory"),
                            (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), "memory"),
                            (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "memory"),
                            (RuntimeError("CUDA error: device-side assert triggered"), "device"),
                            (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "device"),
                            (RuntimeError("CUDA error: no kernel image is available"), "device"),
                            (RuntimeError("shape mismatch"), "other"), (ValueError("out of memory"), "other")):
            self.assertEqual(burst_device.kind_of(error), kind, error)

    def test_a_card_that_cannot_compute(self) -> None:
        self.assertIn("cannot compute: CUDA error: no kernel image", burst_device.Cuda(FakeTorch(fails=True)).self_test())
        self.assertIn("finds no GPU", burst_device.Cuda(FakeTorch(gpu=False)).self_test())
        self.assertIn("has no kernels", burst_device.Cuda(FakeTorch(archs=["sm_90"])).self_test())
        self.assertIn("computes wrongly", burst_device.Cuda(FakeTorch(result=1.0)).self_test())
        self.assertIsNone(burst_device.Cuda(FakeTorch()).self_test())


class FakeTorch:
    __version__ = "2.6.0"

    def __init__(self, gpu: bool = True, archs: Optional[list[str]] = None, fails: bool = False, result: float = 64.0**3 * 4) -> None:
        self.cuda = self
        self.is_available = lambda: gpu
        self.get_arch_list = lambda: archs or ["sm_120"]
        self.fails, self.result = fails, result

    def get_device_name(self, _: int) -> str:
        return "Fake 5090"

    def get_device_capability(self, _: int) -> tuple[int, int]:
        return 12, 0

    def full(self, *_: Any, **__: Any) -> "FakeTorch":
        return self

    def __matmul__(self, _: Any) -> "FakeTorch":
        if self.fails:
            raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
        return self

    def sum(self) -> "FakeTorch":
        return self

    def item(self) -> float:
        return self.result


class Memory(unittest.TestCase):
    def test_nothing_of_a_failed_batch_is_held_when_memory_is_released(self) -> None:
        class Tensor:
            pass

        held: list[weakref.ref[Tensor]] = []

        def work() -> None:
            big = Tensor()
            held.append(weakref.ref(big))
            raise RuntimeError("CUDA out of memory")

        outcome = burst_render.attempt(work)
        gc.collect()
        self.assertEqual(outcome.kind, "memory")
        self.assertIsNone(held[0]())


class Audio(unittest.TestCase):
    def test_samples(self) -> None:
        self.assertEqual(burst_audio.pcm16([0.0, 1.0, -1.0, 2.0]), b"\0\0\xff\x7f\x01\x80\xff\x7f")
        for bad in ([], [0.0, float("nan")], [float("inf")]):
            with self.assertRaises(burst_audio.BadAudio):
                burst_audio.pcm16(bad)

    def test_words_of_a_text(self) -> None:
        cases = [
            ("Hello, old world.", "həlˈoʊ, ˈoʊld wˈɜːld.", "Hello,@0-5 old@8-11 world.@14-18"),
            ("Out of the box", "ˈaʊt ʌvðə bˈɑːks", "Out@0-3 of@5-8 box@10-13"),  # two words that are said as one
            ("Since 1994, yes", "sˈɪns nˈaɪntiːn nˈaɪndi fˈoːɹ, jˈɛs", "Since@0-4 1994,@6-29 yes@31-34"),
            ("Go – now!", "ɡˈoʊ nˈaʊ!", "Go@0-3 now!@5-8"),
            ("… ,", "ɡˈoʊ", ""),
            ("Go", "", ""),
        ]
        for text, phonemes, want in cases:
            symbols = [burst_words.Symbol(c, i, i + 1) for i, c in enumerate(phonemes)]
            found = burst_words.find_words(text, symbols)
            self.assertEqual(" ".join(w.text for w in found), " ".join(w.split("@")[0] for w in want.split()), text)
            for word, wanted in zip(found, want.split()):
                self.assertLessEqual(abs(word.begin - int(wanted.split("@")[1].split("-")[0])), 1, f"{text}: {word}")

    def test_phonemes_of_kokoro(self) -> None:
        class Row:  # what it uses of a tensor
            def __init__(self, *values: int) -> None:
                self.tolist, self.numel = lambda: list(values), lambda: sum(values) * engine_kokoro.FRAME

        engine = engine_kokoro.Kokoro()
        engine.model = type("Model", (), {"vocab": {c: i for i, c in enumerate("ab ,")}})()
        parts = ["a?b, a", "b"]  # both of the second text; the model does not know "?"
        rows = [Row(2, 1, 3, 1, 1, 2, 1), Row(1, 4, 2)]
        of = engine.symbols(2, [1, 1], parts, rows, rows)
        self.assertEqual(of[0], [])
        self.assertEqual([(s.text, s.begin // 600, s.end // 600) for s in of[1]],
                         [("a", 2, 3), ("b", 3, 6), (",", 6, 7), (" ", 7, 8), ("a", 8, 10), (" ", 11, 11), ("b", 12, 16), (" ", 18, 18)])

    def test_words_are_marked_in_the_file(self) -> None:
        words = [burst_audio.Word("Süße", 10, 20), burst_audio.Word("abc", 30, 5)]
        with tempfile.TemporaryDirectory() as folder:
            written = burst_audio.write_wav(f"{folder}/a.wav", bytes(200), 8000, words)
            with open(f"{folder}/a.wav", "rb") as f:
                data = f.read()
            with wave.open(f"{folder}/a.wav") as f:
                self.assertEqual(f.getnframes(), 100)
        self.assertEqual((written.bytes, written.sha256), (len(data), hashlib.sha256(data).hexdigest()))
        self.assertEqual(int.from_bytes(data[4:8], "little"), len(data) - 8)
        self.assertEqual(data[244:248], b"cue ")
        self.assertIn(b"labl\x0b\0\0\0\1\0\0\0S\xc3\xbc\xc3\x9fe\0\0ltxt", data)
        self.assertTrue(data.endswith(b"labl\x08\0\0\0\2\0\0\0abc\0"))

    def test_engine_without_stages(self) -> None:
        engine = burst_engine.Engine()
        self.assertEqual(engine.tokens([burst_engine.Task("a", "a.wav", "x")] * 2), [None, None])


if __name__ == "__main__":
    unittest.main(verbosity=2)
