#!/usr/bin/env python3
"""weights.py - from a worker's first moment to a loaded Chatterbox, burst's way against the published from_local(): files of the true
sizes with random weights, each way in a process of its own, on the processor. Without the first batch, which takes long here and says
nothing of a GPU. Where it may, it drops the page cache before each, as on a pod that has just come. Then what a pod does before that:
the agent unpacks the environment, which is all packages but torch and CUDA, since the image has those. The last line holds the sum
against the time that a cold start may take. Needs `make chatterbox-packages` and 12 GB on the disk."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time

import cold
import environment
from cold import HERE, ROOT, TIMES

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workers"))
sys.dont_write_bytecode = True
BEGAN = time.monotonic()
BUDGET_S = 30  # from the agent's start to the first batch, on a warm volume
IN_THE_IMAGE = ("torch", "nvidia", "triton", "torchgen", "functorch")


def make_files(folder: str) -> None:
    """All three models as published, with whatever their memory holds: the values do not matter here."""
    from burst_read import bare
    from safetensors.torch import save_file

    import torch
    from chatterbox.models.s3gen import S3Gen
    from chatterbox.models.t3 import T3
    from chatterbox.models.voice_encoder import VoiceEncoder
    from chatterbox_prepare import FILES, prepare

    with bare(), torch.no_grad():
        for model, name in ((T3, FILES[False][0]), (S3Gen, FILES[False][1]), (VoiceEncoder, "ve.safetensors")):
            save_file({key: value.contiguous().clone().random_(0, 2) for key, value in model().state_dict().items()},
                      os.path.join(folder, name))
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump({"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
                   "truncation": None, "padding": None,
                   "model": {"type": "WordLevel", "vocab": {"[START]": 0, "[STOP]": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}, f)
    ready = os.path.join(folder, "ready", "weights")
    os.makedirs(ready)
    for name in (*FILES[False], "ve.safetensors", "tokenizer.json"):
        shutil.copyfile(os.path.join(folder, name), os.path.join(ready, name))
    prepare(ready)


def load_published(folder: str) -> dict[str, float]:
    from chatterbox.tts import ChatterboxTTS

    imported = time.monotonic()
    ChatterboxTTS.from_local(folder, "cpu")
    return {"import_s": imported - BEGAN, "rest_s": time.monotonic() - imported}


def load_ours(folder: str) -> dict[str, float]:
    from burst_phases import Phases
    from engine_chatterbox import Chatterbox

    os.environ["BURST_ENV"] = folder
    engine = Chatterbox()
    engine.phase = Phases()
    engine.begin()
    with engine.phase("import"):
        import torch
    engine.where, engine.number = "cpu", torch.bfloat16
    engine.load()
    return engine.phase.facts()


def measure(way: str, folder: str) -> dict[str, float]:
    began = time.monotonic()
    done = subprocess.run([sys.executable, os.path.abspath(__file__), way, folder], check=True, stdout=subprocess.PIPE, text=True)
    return {**json.loads(done.stdout.splitlines()[-1]), "all_s": time.monotonic() - began}


def unpack_s() -> float:
    """Until the agent has unpacked what a pod's environment holds beside the image."""
    with cold.folder("environment") as top:
        leave_out = " ".join(f"--exclude=./{name}" for name in IN_THE_IMAGE)
        tree = environment.pack(top, f'mkdir "$BURST_ENV/packages" && cd "{sysconfig.get_paths()["purelib"]}" && '
                                     f'tar {leave_out} -cf - . | tar -xf - -C "$BURST_ENV/packages"')
        size = os.path.getsize(f"{top}/volume/env/e/.burst-archive") / 1e6
        times = [environment.start(top, number + 1, tree, [], "os")[1] for number in range(TIMES)]
    print(f"the agent unpacks the environment, an archive of {size:.0f} MB: {min(times):.1f} s; {cold.each(times)}", flush=True)
    return min(times)


def hold_against_budget(unpack: float, best: dict[str, float]) -> None:
    """A processor's warm-up takes minutes, and no share of a card's: the line says what is left for it."""
    parts = {"unpack": unpack} | {name: best.get(f"{name}_s", 0.0) for name in ("import", "read", "build")}
    total = sum(parts.values())
    print("cold start on this processor, files of the true sizes with random bytes: " + " + ".join(f"{name} {s:.1f}" for name, s in parts.items()) +
          f" = {total:.1f} s of {BUDGET_S} s; " + (f"{BUDGET_S - total:.1f} s are left for the warm-up on a GPU, which is not measured here"
                                                   if total < BUDGET_S else f"{total - BUDGET_S:.1f} s too long, without the warm-up"))


def show(name: str, runs: list[dict[str, float]]) -> dict[str, float]:
    best = min(runs, key=lambda run: run["all_s"])
    parts = ", ".join(f"{key[:-2]} {value:.1f}" for key, value in best.items() if key != "all_s")
    print(f"{name}: {best['all_s']:.1f} s ({parts}); {cold.each([run['all_s'] for run in runs])}", flush=True)
    return best


def main() -> None:
    if len(sys.argv) > 2:
        sys.path.insert(0, os.path.join(ROOT, "jobs", "workers"))
        print(json.dumps({"published": load_published, "ours": load_ours}[sys.argv[1]](sys.argv[2])))
        return
    import test_chatterbox as twin  # goes on under the Python that has the packages

    if twin.MISSING:
        print(f"weights: skipped: {twin.MISSING}")
        return
    with cold.folder("weights") as folder:
        make_files(folder)
        ready = os.path.join(folder, "ready")
        dropped, ours, published, plain = True, [], [], []
        for _ in range(TIMES):
            dropped &= cold.drop_cache()
            began = time.monotonic()
            subprocess.run(f"cat {ready}/weights/*.safetensors >/dev/null", shell=True, check=True)
            plain.append(time.monotonic() - began)
            for way, runs, where in (("published", published, folder), ("ours", ours, ready)):
                cold.drop_cache()
                runs.append(measure(way, where))
        size = sum(os.path.getsize(os.path.join(ready, "weights", name)) for name in os.listdir(os.path.join(ready, "weights"))) / 1e9
        print(f"# from a worker's first moment to a loaded Chatterbox, files of the true sizes, {cold.said(dropped)}")
        slow = show("published from_local()", published)
        fast = show("burst", ours)
        print(f"published / burst: {slow['all_s'] / fast['all_s']:.2f}x; cat of the same {size:.1f} GB: {min(plain):.1f} s", flush=True)
    hold_against_budget(unpack_s(), fast)


if __name__ == "__main__":
    main()
