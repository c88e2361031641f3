#!/usr/bin/env python3
"""voices_qwen3.py - batches of Qwen3-TTS' language model against the published calls one text at a time, in one run on the processor:
the published classes with the small model's widths, fewer layers and random weights. Processor time of one thread, so that other work
does not show. Then the share of a batch's time that the harness spends outside of the model. Needs `make qwen3-packages`."""
from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any, Callable
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workers"))
sys.dont_write_bytecode = True

import test_qwen3 as twin  # noqa: E402  (goes on under the Python that has the packages)

SHAPE = {"codes": 2048, "books": 16, "width": 1024, "layers": 4, "heads": 16, "kv_heads": 8, "head": 128, "inner": 3072,
         "sub_width": 1024, "sub_layers": 1, "text_width": 2048, "latent": 16, "decoder": 32, "sharp": 1.0}
TEXTS = 16


def cpu_s(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def published(engine: Any, task: Any) -> None:
    wrapper = engine.wrapper
    wrapper.generate_custom_voice(text=task.text, speaker=task.voice, language="english", max_new_tokens=engine.cap(task) + 1)


def main() -> None:
    from burst_device import Cpu
    from burst_engine import Task
    from burst_render import Renderer

    with tempfile.TemporaryDirectory() as folder:
        engine = twin.make_engine(folder, "custom", "0.6b", shape=SHAPE)
        tasks = [Task(f"s{i}", f"s{i}.wav", f"A line of the bench, number {i}." + " More." * (i % 4), "ryan", None, i, {"language": "english"})
                 for i in range(TEXTS)]
        caps = [engine.cap(task) for task in tasks]
        published(engine, tasks[0])
        alone = cpu_s(lambda: [published(engine, task) for task in tasks])
        print(f"# Qwen3-TTS' language model with the widths of 0.6B, {SHAPE['layers']} of 28 layers and {SHAPE['sub_layers']} of 5 of its code "
              f"predictor, random weights, fp32, one thread: {TEXTS} texts of {min(caps)} to {max(caps)} frames")
        print(f"published calls, one by one: {alone:.1f} s of processor time")
        for b in (1, 4, 16):
            took = cpu_s(lambda: [engine.tokens(tasks[at:at + b]) for at in range(0, TEXTS, b)])
            print(f"burst, batches of {b}: {took:.1f} s, {alone / took:.2f} times as fast")
        renderer = Renderer(engine, Cpu(), mock.Mock(), folder, TEXTS)
        raw = [{"id": t.id, "file": t.file, "text": t.text, "voice": t.voice, "seed": t.seed, "options": t.options} for t in tasks]
        with mock.patch.object(engine, "judge", lambda spoken, *_: spoken.codes):
            began = time.monotonic()
            renderer.render({"batch": "b", "segments": raw})
            total, timing = time.monotonic() - began, renderer.timing
    print(f"a batch of {TEXTS} with its sound: {total:.1f} s, {100 * (1 - (timing.tokens_s + timing.waves_s) / total):.1f} % of them outside of "
          "the model")


if __name__ == "__main__":
    if twin.MISSING:
        print(f"voices: {twin.MISSING}")
        sys.exit(0)
    twin.torch.set_num_threads(1)
    main()
