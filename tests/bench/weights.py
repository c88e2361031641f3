#!/usr/bin/env python3
"""weights.py - from a worker's first moment to a loaded Chatterbox, burst's way against the published from_local(): files of the true
sizes with random weights, each way in a process of its own, on the processor. Without the first batch, which takes long here and says
nothing of a GPU. Where it may, it drops the page cache before each, as on a pod that has just come. Needs `make chatterbox-packages`
and 7 GB on the disk."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workers"))
sys.dont_write_bytecode = True
BEGAN = time.monotonic()
TIMES = 3


def drop_cache() -> bool:
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3")
        return True
    except OSError:
        return False


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


def show(name: str, runs: list[dict[str, float]]) -> float:
    best = min(runs, key=lambda run: run["all_s"])
    parts = ", ".join(f"{key[:-2]} {value:.1f}" for key, value in best.items() if key != "all_s")
    print(f"{name}: {best['all_s']:.1f} s ({parts}); each time: " + ", ".join(f"{run['all_s']:.1f}" for run in runs))
    return best["all_s"]


def main() -> None:
    if len(sys.argv) > 2:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "jobs", "workers"))
        print(json.dumps({"published": load_published, "ours": load_ours}[sys.argv[1]](sys.argv[2])))
        return
    import test_chatterbox as twin  # goes on under the Python that has the packages

    if twin.MISSING:
        print(f"weights: skipped: {twin.MISSING}")
        return
    with tempfile.TemporaryDirectory(prefix="burst-weights-", dir=os.environ.get("BURST_BENCH_DIR", "/var/tmp")) as folder:
        make_files(folder)
        ready = os.path.join(folder, "ready")
        cold, ours, published, plain = True, [], [], []
        for _ in range(TIMES):
            cold &= drop_cache()
            began = time.monotonic()
            subprocess.run(f"cat {ready}/weights/*.safetensors >/dev/null", shell=True, check=True)
            plain.append(time.monotonic() - began)
            for way, runs, where in (("published", published, folder), ("ours", ours, ready)):
                drop_cache()
                runs.append(measure(way, where))
        size = sum(os.path.getsize(os.path.join(ready, "weights", name)) for name in os.listdir(os.path.join(ready, "weights"))) / 1e9
        print(f"# from a worker's first moment to a loaded Chatterbox, files of the true sizes, page cache {'dropped' if cold else 'warm'}, "
              f"the best of {TIMES}")
        slow = show("published from_local()", published)
        fast = show("burst", ours)
        print(f"published / burst: {slow / fast:.2f}x; cat of the same {size:.1f} GB: {min(plain):.1f} s")


if __name__ == "__main__":
    main()
