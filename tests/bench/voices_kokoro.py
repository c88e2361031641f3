#!/usr/bin/env python3
"""voices_kokoro.py - batches of Kokoro against the published model one text at a time, in one run on the processor: the published class at
its full size with random weights, 32 bits, processor time of one thread, so that other work does not show. Then how long a worker takes
to have its weights: the published class, and ours, each in a process of its own. Needs `make kokoro-packages`."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workers"))
sys.dont_write_bytecode = True

import test_kokoro as twin  # noqa: E402  (goes on under the Python that has the packages)

TEXTS = 16
TIMES = 3


def cpu_s(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def batches(model: Any) -> None:
    torch = twin.torch
    ids, styles = twin.make_ids(TEXTS), torch.randn(TEXTS, 256)
    spoken: list[Any] = []

    def published() -> None:
        with torch.no_grad():
            spoken.extend(model.forward_with_tokens(ids[i][None], styles[i:i + 1], 1.0)[0] for i in range(TEXTS))

    def ours(b: int) -> None:
        for at in range(0, TEXTS, b):
            many = range(at, min(at + b, TEXTS))
            twin.kokoro_batch.Batch(model, [ids[i] for i in many], styles[at:at + b], [1.0] * len(many), list(many)).speak()

    ours(2)  # what is made once
    alone = cpu_s(published)
    seconds = sum(wave.numel() for wave in spoken) / 24000
    print(f"# Kokoro at its full size, random weights, fp32, one thread: {TEXTS} texts, {seconds:.0f} s of sound in all")
    print(f"published model, one by one: {alone:.1f} s of processor time")
    for b in (1, 4, 16):
        took = cpu_s(lambda: ours(b))
        print(f"burst, batches of {b}: {took:.1f} s, {alone / took:.2f} times as fast")


# ---- the weights ----

def load_published(folder: str) -> None:
    from kokoro_batch import model_class

    model_class()(repo_id="hexgrad/Kokoro-82M", config=f"{folder}/weights/config.json", model=f"{folder}/weights/kokoro-v1_0.pth")


def load_ours(folder: str) -> dict[str, float]:
    from burst_phases import Phases
    from engine_kokoro import Kokoro

    os.environ["BURST_ENV"] = folder
    engine = Kokoro()
    engine.where, engine.phase = "cpu", Phases()
    engine.begin()
    engine.load()
    return engine.phase.facts()


def drop_cache(path: str) -> None:
    """Of this file: what a pod reads is not in its memory."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def loads(model: Any) -> None:
    torch = twin.torch
    with tempfile.TemporaryDirectory(prefix="burst-weights-", dir=os.environ.get("BURST_BENCH_DIR", "/var/tmp")) as folder:
        os.makedirs(f"{folder}/weights/voices")
        torch.save(torch.randn(510, 1, 256), f"{folder}/weights/voices/af_heart.pt")
        with open(f"{folder}/weights/config.json", "w", encoding="utf-8") as f:
            json.dump(twin.CONFIG, f)
        path = f"{folder}/weights/kokoro-v1_0.pth"
        torch.save({name: part.state_dict() for name, part in model.named_children()}, path)
        took: dict[str, list[float]] = {"published": [], "ours": []}
        for _ in range(TIMES):
            for way, each in took.items():
                drop_cache(path)
                began = time.monotonic()
                subprocess.run([sys.executable, os.path.abspath(__file__), way, folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                each.append(time.monotonic() - began)
        size = os.path.getsize(path) / 1e6
    for way, each in took.items():
        print(f"a process that has the weights ({size:.0f} MB), {way}: {min(each):.1f} s; each time: " + ", ".join(f"{t:.1f}" for t in each))


if __name__ == "__main__":
    if twin.MISSING:
        print(f"voices: {twin.MISSING}")
    elif len(sys.argv) > 2:
        {"published": load_published, "ours": load_ours}[sys.argv[1]](sys.argv[2])
    else:
        twin.torch.set_num_threads(1)
        made = twin.make_model(small=False)
        batches(made)
        loads(made)
