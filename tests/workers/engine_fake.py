"""An engine for tests, with the timing, the memory and the faults of a GPU engine, and no GPU.

The environment sets: ONCE, LONGEST, EACH (seconds: a batch takes ONCE + LONGEST x longest text + EACH x all texts), CARD, BASE,
DRIVER, TORCH (versions that the card's facts name), SLOPE (GiB: CARD of 0 is no GPU; a batch of b takes BASE + SLOPE x b, and MORE times the
slope when it is no rehearsal), WAVE_SLOPE (the same for the sound), ARCH (what "torch" was built for), LOAD_S, FAULTS.
FAULTS is a list "TEXT:FAULT" of texts that make the batch they are in behave so: oom (RuntimeError), cuda, nan, empty, runaway,
error, hang, garbled (with SPELL: other words), worsening (more other
words in each try); with "?" behind it, only with the seed that the task came with; with "!" only when the
text is not alone. SPELL=1 writes the text into the samples, for words_stand_in/.
"""
from __future__ import annotations

import math
import os
import time
from typing import Any, Optional, Sequence

from burst_device import Cpu, DeviceLost, Unfit, has_kernels
from burst_engine import Bad, BadTask, Engine, Option, Task, nearest
from burst_wire import log

RATE = 8000
VOICES = ("anna", "bert")


def number(name: str, usual: float) -> float:
    return float(os.environ.get(name, usual))


class FakeCard(Cpu):
    def __init__(self) -> None:
        self.card, self.used, self.peak = number("CARD", 0), number("BASE", 0), 0.0
        self.gpu = "Fake 5090" if self.card else False

    def self_test(self) -> Optional[str]:
        arch = os.environ.get("ARCH", "sm_120")
        if self.card and not has_kernels(arch.split(), 12, 0):
            return Unfit(f"torch 2.6.0 has no kernels for {self.gpu} (sm_120; it has {arch})")
        return None

    def total_gib(self) -> float:
        return self.card

    def reset_peak(self) -> None:
        self.peak = self.used

    def peak_gib(self) -> float:
        return self.peak

    def facts(self) -> str:
        return f"{self.gpu} {self.card:.1f} GiB driver {os.environ.get('DRIVER', '570.86.15')} torch {os.environ.get('TORCH', '2.8.0')}"

    def take(self, gib: float) -> None:
        if self.card and self.used + gib > self.card:
            raise RuntimeError(f"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate ({self.used + gib:.1f} GiB)")
        self.peak = max(self.peak, self.used + gib)


class Fake(Engine):
    name = "fake"
    sample_rate = RATE
    options = {"speed": Option(0.25, 4, 1), "steps": Option(1, 20, 5, whole=True)}
    max_batch = int(number("MAX_BATCH", 64))
    wave_batch = int(number("WAVE_BATCH", 8))

    def make_device(self) -> FakeCard:
        self.card = FakeCard()
        return self.card

    def load(self) -> None:
        time.sleep(number("LOAD_S", 0))
        if "LOST" in os.environ:
            raise DeviceLost("CUDA error: unspecified launch failure")
        self.slope = number("SLOPE", 0)
        self.wave_slope = number("WAVE_SLOPE", 0)
        self.seen: dict[str, int] = {}
        self.tries: dict[str, int] = {}
        self.faults = [f.rpartition(":")[::2] for f in os.environ.get("FAULTS", "").split(",") if f]

    def weights(self) -> str:
        return "0123456789abcdef"

    def check(self, task: Task) -> None:
        if task.voice and task.voice not in VOICES:
            raise BadTask(f"unknown voice {task.voice!r}{nearest(task.voice, VOICES)}")

    def fault(self, task: Task, alone: bool) -> str:
        first = self.seen.setdefault(task.id, task.seed)
        for text, what in self.faults:
            if text in task.text and not (what.endswith("?") and task.seed != first) and not (what.endswith("!") and alone):
                return what.rstrip("?!")
        return ""

    def tokens(self, tasks: Sequence[Task]) -> Sequence[Any]:
        self.card.take(self.slope * number("MORE", 1) * len(tasks))
        lengths = [len(t.text) for t in tasks]
        time.sleep(number("ONCE", 0) + number("LONGEST", 0) * max(lengths) + number("EACH", 0) * sum(lengths))
        return [self.row(t, len(tasks) == 1) for t in tasks]

    def row(self, task: Task, alone: bool) -> Any:
        fault = self.fault(task, alone)
        if fault == "oom":
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        if fault == "cuda":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if fault == "error":
            raise ValueError("this text cannot be spoken")
        if fault == "hang":
            time.sleep(3600)
        if fault == "runaway":
            return Bad("it did not end within its cap")
        return fault

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        self.card.take(self.wave_slope * len(tasks))
        return [self.wave(t, row) for t, row in zip(tasks, tokens)]

    def wave(self, task: Task, row: str) -> list[float]:
        """A tone whose height comes from the seed and whose length from the text."""
        if row == "empty":
            return []
        samples = int(RATE * max(0.4, len(task.text) / 15))
        step = (200 + task.seed % 400) * 2 * math.pi / RATE
        wave = [0.3 * math.sin(step * i) for i in range(samples)]
        if "SPELL" in os.environ:
            said = "quite another thing was said" if row == "garbled" else task.text
            if row == "worsening":
                self.tries[task.id] = self.tries.get(task.id, 2) + 1
                said = " ".join(["xyz"] * self.tries[task.id] + task.text.split()[self.tries[task.id]:])
            spelled = [0.75, *(b / 512 for b in said.encode()), 0.75]
            wave[100:100 + len(spelled)] = spelled
        if row == "nan":
            wave[samples // 2] = math.nan
        return wave

    def rehearse(self, b: int) -> None:
        self.card.take(self.slope * b)
        self.held = number("HELD", 0) * b

    def held_gib(self) -> float:
        return getattr(self, "held", 0.0)

    def expect(self, b: int) -> None:
        log(f"no batch will have more than {b}")

    def release(self) -> None:
        log("what was kept is forgotten")


ENGINE = Fake
