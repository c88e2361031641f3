"""Records steps once and replays them: CUDA graphs. A replay costs one launch, a step some hundreds.

A step can be recorded if it reads and writes only tensors that keep their addresses. Each recording is checked: from one state, the
step and its replay must lead to the same result. If a recording fails or differs, the worker continues without recordings.
BURST_CUDA_GRAPHS=0 turns them off. This file imports only the standard library; callers pass torch in.
"""
from __future__ import annotations

import collections
import contextlib
import hashlib
import os
from typing import Any, Callable, Hashable, Iterator, Optional, Protocol, Sequence

from burst_device import GIB, DeviceLost, kind_of
from burst_wire import log

RUNS_FIRST = 16      # runs of a step before it is recorded: a recording takes as long as some runs
MOST = 48            # recordings; each holds driver memory
ROOM_GIB = 0.25      # free memory that a recording needs
NEAR = 0.01          # allowed difference of logits, relative to the largest

Step = Callable[[], None]


class Tape(Protocol):
    """The recorder. Its calls do not affect other steps."""

    def run(self, step: Step) -> None:
        """Runs the step in the same way as its recording will."""

    def record(self, step: Step) -> Step:
        """Returns the replay. Does not run the step."""

    def check(self) -> None:
        """Raises if the device is lost."""

    def clear(self) -> None:
        """Drops all replays and returns their memory."""

    def free_gib(self) -> float: ...

    def shared_gib(self) -> float:
        """Memory that all replays share."""

    def each_gib(self) -> float:
        """Further memory that each replay holds, on average."""


class CudaTape:
    """All recordings share one memory pool: they never run at once, and lasting tensors are outside it."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.clear()

    def clear(self) -> None:
        self.pool, self.recorded, self.driver, self.pooled = None, 0, 0, 0
        self.torch.cuda.empty_cache()

    def run(self, step: Step) -> None:
        """Uses the recordings' stream, so that libraries set up their state for it before a recording."""
        cuda = self.torch.cuda
        self.stream.wait_stream(cuda.current_stream())
        with cuda.stream(self.stream):
            step()
        cuda.current_stream().wait_stream(self.stream)

    def record(self, step: Step) -> Step:
        cuda, before = self.torch.cuda, self.torch.cuda.current_stream()
        cuda.synchronize()
        cuda.empty_cache()
        free, reserved = cuda.mem_get_info()[0], cuda.memory_reserved()
        graph = cuda.CUDAGraph()
        try:
            # the writers' threads copy sound to the host meanwhile, which must not abort a recording
            with cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                step()
        finally:
            cuda.set_stream(before)  # a failed recording leaves its own stream current
        self.pool = self.pool or graph.pool()
        cuda.synchronize()
        pooled = max(0, cuda.memory_reserved() - reserved)
        self.driver += max(0, free - cuda.mem_get_info()[0] - pooled)
        self.pooled += pooled
        self.recorded += 1
        return graph.replay

    def check(self) -> None:
        self.torch.cuda.synchronize()

    def free_gib(self) -> float:
        cuda = self.torch.cuda
        return (cuda.mem_get_info()[0] + cuda.memory_reserved() - cuda.memory_allocated()) / GIB - self.pooled / GIB

    def shared_gib(self) -> float:
        return self.pooled / GIB

    def each_gib(self) -> float:
        return self.driver / GIB / max(1, self.recorded)


class Graphs:
    def __init__(self, tape: Tape, runs_first: int = RUNS_FIRST) -> None:
        self.tape, self.runs_first = tape, runs_first
        self.replays: dict[Hashable, Step] = {}
        self.runs: collections.Counter[Hashable] = collections.Counter()
        self.replayed = 0
        self.off = self.full = False

    def run(self, key: Hashable, step: Step, state: Sequence[Any]) -> None:
        """Runs or replays one step. STATE: the tensors that it changes and that matter later."""
        replay = self.replays.get(key)
        if replay:
            self.replayed += 1
            replay()
            return
        self.runs[key] += 1
        if self.off or self.full or self.runs[key] <= self.runs_first:
            step()
        else:
            self.record(key, step, state)

    def record(self, key: Hashable, step: Step, state: Sequence[Any]) -> None:
        """Runs one step and records it."""
        if len(self.replays) >= MOST or self.tape.free_gib() < ROOM_GIB:
            self.stop_recording("no memory is left for more" if len(self.replays) < MOST else f"{MOST} are enough")
            step()
            return
        before = [tensor.clone() for tensor in state]
        self.tape.run(step)
        replay, kind, why = self.try_to_record(step, state, before, [tensor.clone() for tensor in state])
        if not kind:
            self.replays[key] = replay
            return
        # outside of `except`: a traceback holds tensors
        del replay
        if kind == "memory":
            self.stop_recording("no memory is left for more")
        else:
            self.turn_off(why)
        self.tape.check()
        put(state, before)
        step()

    def try_to_record(self, step: Step, state: Sequence[Any], before: Sequence[Any], after: Sequence[Any]) -> tuple[Optional[Step], str, str]:
        """Returns the replay, the kind of a failure, and its text."""
        try:
            put(state, before)
            replay = self.tape.record(step)
            replay()
            why = difference(state, after)
        except Exception as error:
            kind = "memory" if kind_of(error) == "memory" else "other"
            return None, kind, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
        return replay, "other" if why else "", why

    def stop_recording(self, why: str) -> None:
        self.full = True
        log(f"CUDA graphs: {len(self.replays)} recorded; {why}, the other steps run without")

    def turn_off(self, why: str) -> None:
        self.off = True
        self.clear()
        log(f"CUDA graphs: off, because the first recording failed or differed: {why}; all steps run without")

    def clear(self) -> None:
        """Drops all recordings: they must not run once their tensors are freed."""
        self.replays.clear()
        self.runs.clear()
        self.full = False
        self.tape.clear()

    def held_gib(self, expected: int = 0) -> float:
        """Memory of the recordings, or of EXPECTED ones if that is more."""
        return self.tape.shared_gib() + self.tape.each_gib() * max(len(self.replays), min(expected, MOST)) if self.replays else 0.0


def put(state: Sequence[Any], values: Sequence[Any]) -> None:
    for tensor, value in zip(state, values):
        tensor.copy_(value)


def difference(state: Sequence[Any], expected: Sequence[Any]) -> str:
    """Returns "" if the tensors are equal; fractions may differ a little."""
    for i, (tensor, value) in enumerate(zip(state, expected)):
        if not tensor.is_floating_point():
            if not bool((tensor == value).all()):
                return f"tensor {i} of its state is another"
            continue
        apart, most = float((tensor - value).nan_to_num().abs().max()), float(value.nan_to_num().abs().max())
        if apart > NEAR * max(most, 1.0) or not bool((tensor.isnan() == value.isnan()).all()):
            return f"its logits differ by {apart:.3g}, of at most {most:.3g}"
    return ""


# ---- recording for the first time on this pod ----

@contextlib.contextmanager
def first_time(about: str) -> Iterator[bool]:
    """Guards the first recording of a process. Yields False if an earlier process died during its own: a driver's fault may kill the
    process, and the agent then starts another, which must not record."""
    path = os.path.join(os.environ.get("HOME", "/tmp"), ".burst-graphs-" + hashlib.sha256(about.encode()).hexdigest()[:16])
    if another_ended(path):
        log("CUDA graphs: off, because a worker here ended while it recorded the first")
        yield False
        return
    with contextlib.suppress(OSError):
        with open(path, "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))
    try:
        yield True
    except Exception as error:  # keep the file
        if kind_of(error) == "device":
            raise DeviceLost(f"while the first CUDA graph was recorded: {str(error)[:200]}") from error
        raise
    with contextlib.suppress(OSError):
        os.unlink(path)


def another_ended(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as f:
            pid = int(f.read() or 0)
    except (OSError, ValueError):
        return False
    return pid > 0 and pid != os.getpid() and not os.path.exists(f"/proc/{pid}")


def wanted() -> bool:
    return os.environ.get("BURST_CUDA_GRAPHS", "1") != "0"
