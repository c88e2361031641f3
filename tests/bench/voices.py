#!/usr/bin/env python3
"""voices.py - batches of Chatterbox's language model against the published code one text at a time, in one run on the processor:
the published classes with 8 of 30 layers and random weights. Processor time of one thread, so that other work does not show. Then
Turbo's, with and without the shared conditioning of a voice, and the share of a batch's time that the harness spends outside of the
model, with the sound. Needs `make chatterbox-packages`."""
from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any, Callable

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "workers"))
sys.dont_write_bytecode = True

import test_chatterbox as twin  # noqa: E402  (goes on under the Python that has the packages)

LAYERS = 8
TEXTS = 16


def cpu_s(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def tokens_part() -> None:
    from chatterbox_t3 import Speech

    twin.LAYERS = LAYERS
    case = twin.Regular
    case.t3, case.texts = twin.make_t3(False), twin.make_texts(TEXTS)
    case.t3.hp.stop_speech_token = 8000  # none ends before its cap
    case.published(0)
    alone = cpu_s(lambda: [case.published(i) for i in range(TEXTS)])
    print(f"# Chatterbox's language model, {LAYERS} of 30 layers, random weights, fp32, one thread: {TEXTS} texts of "
          f"{min(map(twin.cap, range(TEXTS)))} to {max(map(twin.cap, range(TEXTS)))} tokens")
    print(f"published code, one by one: {alone:.1f} s of processor time")
    for b in (1, 4, 16):
        took = cpu_s(lambda: [Speech(case.t3, [case.row(i) for i in range(at, at + b)], False, lambda _: None).speak()
                              for at in range(0, TEXTS, b)])
        print(f"burst, batches of {b}: {took:.1f} s, {alone / took:.2f} times as fast")


def heads_part() -> None:
    """What it saves that all texts of a voice share the conditioning: Turbo's is 376 tokens long."""
    from chatterbox_slots import Model
    from chatterbox_t3 import Speech, make_head

    case, layers = twin.Turbo, 4
    twin.LAYERS = layers
    case.t3, case.texts = twin.make_t3(True), twin.make_texts(TEXTS)
    case.t3.hp.stop_speech_token = 8000
    rows, own = ([case.row(i) for i in range(TEXTS)] for _ in range(2))
    cond = twin.make_cond(case.t3, True, 0)

    def shared() -> None:
        with twin.torch.inference_mode():
            x = case.t3.prepare_conditioning(cond)[0]
        head = make_head(Model(case.t3, True), x)
        for row in rows:
            row.head, row.prompt = head, row.prompt[len(head):]
        Speech(case.t3, rows, True, lambda _: None).speak()

    alone = cpu_s(lambda: [case.published(i) for i in range(TEXTS)])
    each = cpu_s(lambda: Speech(case.t3, own, True, lambda _: None).speak())
    once = cpu_s(shared)
    print(f"# Turbo, {layers} of 24 layers, the same texts in one batch of {TEXTS}")
    print(f"published code, one by one: {alone:.1f} s of processor time")
    print(f"burst, the conditioning in each row: {each:.1f} s, {alone / each:.2f} times as fast")
    print(f"burst, the conditioning once: {once:.1f} s, {alone / once:.2f} times as fast")


def harness_part() -> None:
    from burst_device import Cpu
    from burst_render import Renderer

    with tempfile.TemporaryDirectory() as folder:
        engine = twin.make_engine(folder)
        renderer = Renderer(engine, Cpu(), twin.Said(), folder, 16)
        tasks = [{"id": f"s{i}", "file": f"s{i}.wav", "text": "A line of the bench. " * (1 + i % 3), "seed": i} for i in range(8)]
        began = time.monotonic()
        renderer.render({"batch": "b", "segments": tasks})
        total, timing = time.monotonic() - began, renderer.timing
    print(f"a batch of 8 with its sound: {total:.1f} s, {100 * (1 - (timing.tokens_s + timing.waves_s) / total):.1f} % of them outside of "
          f"the model (of which {100 * timing.wait_s / total:.1f} % waiting for watermarks and files)")


if __name__ == "__main__":
    if twin.MISSING:
        print(f"voices: {twin.MISSING}")
        sys.exit(0)
    twin.torch.set_num_threads(1)
    tokens_part()
    heads_part()
    twin.LAYERS = LAYERS
    harness_part()
