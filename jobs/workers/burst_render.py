"""Renders one batch: checks it, sorts it by length, renders it in two stages. Threads write results while the next sub-batch computes.

When memory runs out, the worker first uses smaller sub-batches of sound, then halves the batch, then sends {"oom":true}; the agent
then sends smaller batches. Memory is freed only outside `except`: a traceback still holds the tensors.
"""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import threading
import time
from typing import Any, Callable, Optional, Sequence

from burst_audio import BadAudio, wav_head, write_wav
from burst_device import Device, DeviceLost, OutOfMemory, kind_of
from burst_engine import Bad, BadTask, Engine, Task, read_task, sound_of
from burst_hear import Hearer
from burst_wire import Wire, log, log_timing

WRITERS = 3
WAITING_MOST = 64          # most results that wait for a writer; each holds memory
OTHER_SEED = 7919          # keeps a retry from using a neighbour's seed
SEED_MOST = (1 << 31) - 1


@dataclasses.dataclass
class Outcome:
    value: Any = None
    kind: str = ""  # "": success; else from burst_device.kind_of()
    text: str = ""


def attempt(work: Callable[[], Any]) -> Outcome:
    """Runs work(). On return the exception and all that its traceback held are freed."""
    try:
        return Outcome(work())
    except Exception as error:
        own = isinstance(error, (OutOfMemory, DeviceLost))
        kind, text = kind_of(error), (str(error) if own else f"{type(error).__name__}: {error}")[:300]
    return Outcome(None, kind, text)


@dataclasses.dataclass
class Timing:
    batch: str
    b: int = 0
    characters: int = 0
    began: float = dataclasses.field(default_factory=time.monotonic)
    tokens_s: float = 0.0
    waves_s: float = 0.0
    wait_s: float = 0.0   # for the writers, after the computation
    write_s: float = 0.0  # sum of the writers' own times
    hear_s: float = 0.0   # part of write_s: what job.check.words took
    audio_s: float = 0.0
    retried: int = 0

    def log(self, device: Device) -> None:
        total = time.monotonic() - self.began
        hear_ms = {"hear_ms": round(1000 * self.hear_s)} if self.hear_s else {}
        log_timing(batch=self.batch, b=self.b, characters=self.characters, total_ms=round(1000 * total),
                   tokens_ms=round(1000 * self.tokens_s), waves_ms=round(1000 * self.waves_s), wait_ms=round(1000 * self.wait_s),
                   write_ms=round(1000 * self.write_s), **hear_ms, audio_s=round(self.audio_s, 3), retried=self.retried,
                   peak_gib=round(device.peak_gib(), 3))


class Writers:
    """Threads that write results to files and report them. A hearer adds to each file what it says."""

    def __init__(self, engine: Engine, wire: Wire, out_dir: str, hearer: Optional[Hearer]) -> None:
        self.engine, self.wire, self.out_dir, self.hearer = engine, wire, out_dir, hearer
        self.pool = concurrent.futures.ThreadPoolExecutor(WRITERS + (hearer.side_by_side if hearer else 0))
        self.room = threading.Semaphore(WAITING_MOST)
        self.lock = threading.Lock()
        self.running: list[concurrent.futures.Future[None]] = []
        self.bad: list[tuple[Task, str]] = []
        self.timing: Optional[Timing] = None

    def put(self, task: Task, wave: Any) -> None:
        self.room.acquire()
        self.running.append(self.pool.submit(self.write, task, wave, time.monotonic()))

    def write(self, task: Task, wave: Any, computed: float) -> None:
        began = time.monotonic()
        try:
            name = os.path.basename(task.file)
            pcm, words = sound_of(self.engine, task, wave)
            heard, hear_s = self.hear(task, pcm)
            written = write_wav(os.path.join(self.out_dir, name), pcm, self.engine.sample_rate, words, heard)
            self.wire.say(segment=task.id, ok=True, file=name, bytes=written.bytes, sha256=written.sha256,
                          seconds=round(written.seconds, 4), rate=self.engine.sample_rate)
            with self.lock:
                self.timing.write_s += time.monotonic() - began
                self.timing.hear_s += hear_s
                self.timing.audio_s += written.seconds
        except BadAudio as error:
            with self.lock:
                self.bad.append((task, str(error)))
        finally:
            self.room.release()

    def hear(self, task: Task, pcm: bytes) -> tuple[Optional[str], float]:
        """What the samples say (None: nothing hears them), and the seconds that it took."""
        if not self.hearer:
            return None, 0.0
        began = time.monotonic()
        heard = self.hearer.hear(wav_head(pcm, self.engine.sample_rate) + pcm, task.language)
        return heard, time.monotonic() - began

    def drain(self) -> list[tuple[Task, str]]:
        """Waits for all writers. Returns the tasks whose sound was bad; raises a writer's exception."""
        running, self.running = self.running, []
        concurrent.futures.wait(running)
        bad, self.bad = self.bad, []
        for future in running:
            future.result()
        return bad


class Renderer:
    def __init__(self, engine: Engine, device: Device, wire: Wire, out_dir: str, most: int, hearer: Optional[Hearer] = None) -> None:
        self.engine, self.device, self.wire, self.most = engine, device, wire, most
        self.wave_batch = engine.wave_batch
        self.writers = Writers(engine, wire, out_dir, hearer)
        self.bad: list[tuple[Task, str]] = []
        self.timing = Timing("")

    def render(self, message: dict[str, Any]) -> None:
        """Renders the batch of one line from the agent. Raises DeviceLost."""
        batch = message["batch"]
        self.timing = self.writers.timing = Timing(batch)
        self.bad = []
        self.device.reset_peak()
        outcome = attempt(lambda: self.render_all(self.accept(message["segments"])))
        self.settle(batch, outcome)

    def settle(self, batch: str, outcome: Outcome) -> None:
        """Reports how the batch ended, once the writers have finished."""
        drained = attempt(self.writers.drain)
        if drained.kind == "device" or not outcome.kind:
            outcome = drained
        self.timing.log(self.device)
        if outcome.kind == "memory":
            self.release()
            self.most = max(1, self.most * 3 // 4)
            self.wire.say(oom=True, error=outcome.text)
        elif outcome.kind == "device":
            raise DeviceLost(outcome.text)
        elif outcome.kind:
            self.wire.say(batch=batch, done=False, error=outcome.text)
        else:
            self.wire.say(batch=batch, done=True)

    def release(self) -> None:
        self.engine.release()
        self.device.release()

    def accept(self, raw_tasks: Sequence[Any]) -> list[Task]:
        """Returns the valid tasks, longest first. Reports the others as failed."""
        tasks = []
        for raw in raw_tasks:
            try:
                tasks.append(read_task(raw, self.engine))
            except BadTask as error:
                self.fail(raw.get("id"), str(error))
            except Exception as error:
                if kind_of(error) != "other":
                    raise
                self.fail(raw.get("id"), f"{type(error).__name__}: {error}")
        self.timing.b, self.timing.characters = len(tasks), sum(len(t.text) for t in tasks)
        return sorted(tasks, key=lambda t: (self.engine.group(t), -self.engine.size(t)))

    def fail(self, segment: Any, why: str) -> None:
        self.wire.say(segment=segment, ok=False, error=why[:300])

    def render_all(self, tasks: list[Task]) -> None:
        for at in range(0, len(tasks), self.most):
            self.render_part(tasks[at:at + self.most], may_split=True)
        self.bad += self.drain()
        for task, why in self.take_bad():
            self.retry(task, why)

    def drain(self) -> list[tuple[Task, str]]:
        began = time.monotonic()
        bad = self.writers.drain()
        self.timing.wait_s += time.monotonic() - began
        return bad

    def take_bad(self) -> list[tuple[Task, str]]:
        bad, self.bad = self.bad, []
        return bad

    def retry(self, task: Task, why: str) -> None:
        """Renders the task once more, alone and with another seed."""
        log(f"{task.id}: {why}; once more, alone and with another seed")
        self.timing.retried += 1
        again = dataclasses.replace(task, seed=(task.seed + OTHER_SEED) & SEED_MOST)
        self.render_part([again], may_split=False)
        for _, last in self.take_bad() + self.drain():
            self.fail(task.id, last if last == why else f"{why}; with another seed: {last}")

    def render_part(self, tasks: list[Task], may_split: bool) -> None:
        outcome = self.stage("tokens_s", lambda: self.engine.tokens(tasks))
        left = tasks
        if not outcome.kind:
            tokens, outcome.value = outcome.value, None
            left, outcome = self.render_waves(tasks, tokens)
            del tokens
        if outcome.kind == "memory":
            self.split(left, may_split, outcome.text)
        elif outcome.kind:
            self.find_bad(left, outcome.text)

    def split(self, tasks: list[Task], may_split: bool, text: str) -> None:
        self.release()
        if not may_split or len(tasks) == 1:
            raise OutOfMemory(text)
        log(f"out of memory with {len(tasks)} segments: in two halves")
        half = (len(tasks) + 1) // 2
        self.render_part(tasks[:half], may_split=False)
        self.render_part(tasks[half:], may_split=False)

    def find_bad(self, tasks: list[Task], text: str) -> None:
        """Renders each task of a failed batch alone, to find the one at fault."""
        if len(tasks) == 1:
            self.bad.append((tasks[0], text))
            return
        log(f"{text}; each of the {len(tasks)} segments alone")
        for task in tasks:
            self.render_part([task], may_split=False)

    def stage(self, name: str, work: Callable[[], Any]) -> Outcome:
        began = time.monotonic()
        outcome = attempt(work)
        setattr(self.timing, name, getattr(self.timing, name) + time.monotonic() - began)
        if outcome.kind == "device":
            raise DeviceLost(outcome.text)
        return outcome

    def render_waves(self, tasks: list[Task], tokens: Sequence[Any]) -> tuple[list[Task], Outcome]:
        """Renders the sound of all rows with good tokens. Returns the tasks that remain after a failure."""
        rows = []
        for task, row in zip(tasks, tokens):
            if isinstance(row, Bad):
                self.bad.append((task, row.why))
            else:
                rows.append((task, row))
        rows.sort(key=lambda r: (self.engine.group(r[0]), -self.engine.wave_cost(*r)))
        while rows:
            n = self.wave_rows(rows)
            now = rows[:n]
            outcome = self.stage("waves_s", lambda: self.engine.waves([t for t, _ in now], [r for _, r in now]))
            if outcome.kind == "memory" and n > 1:
                self.release()
                self.wave_batch = max(1, n // 2)
                log(f"out of memory with the sound of {n} segments: {self.wave_batch} at once from here on")
                continue
            if outcome.kind:
                return [t for t, _ in rows], outcome
            for (task, _), wave in zip(now, outcome.value):
                if isinstance(wave, Bad):
                    self.bad.append((task, wave.why))
                else:
                    self.writers.put(task, wave)
            del rows[:n]
        return [], Outcome()

    def wave_rows(self, rows: list[tuple[Task, Any]]) -> int:
        """How many of the rows go into one call. The longest row comes first."""
        group, longest = self.engine.group(rows[0][0]), self.engine.wave_cost(*rows[0])
        n = 0
        while n < min(len(rows), self.wave_batch) and self.engine.group(rows[n][0]) == group:
            if n and self.engine.wave_budget and (n + 1) * longest > self.engine.wave_budget:
                break
            n += 1
        return n
