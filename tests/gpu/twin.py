"""What the experiments measure: the published classes of Chatterbox with random weights under the loops of jobs/workers, and the
clock and the memory of the device that they run on. Random weights never end a row, so each row's length is set."""
from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Optional

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "jobs", "workers"), os.path.join(ROOT, "tests", "workers")]

import test_chatterbox as published  # noqa: E402  (goes on under the Python that has the packages)

TOKENS_A_CHAR = 25 / 15.0
NEVER = 1 << 20  # a token that no head has


class Setting:
    """--device and --small."""

    def __init__(self, device: str, small: bool) -> None:
        self.device, self.small, self.cuda = device, small, device == "cuda"

    def pick(self, full: Any, small: Any) -> Any:
        return small if self.small else full

    def open(self) -> None:
        """Nothing may touch the card before this: each experiment runs in a process of its own."""
        import torch
        from burst_device import Cpu, Cuda

        self.torch, self.machine = torch, Cuda(torch) if self.cuda else Cpu()
        self.number = torch.bfloat16 if self.cuda else torch.float32
        if self.cuda:
            torch.set_float32_matmul_precision("high")  # as the engine does
            why = self.machine.self_test()
            if why:
                raise RuntimeError(why)
        else:
            torch.set_num_threads(1)

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()

    def seconds(self, work: Callable[[], Any], times: int = 3) -> float:
        """The least of some, after one that does not count."""
        took = []
        for _ in range(1 + self.pick(times, 1)):
            self.wait()
            began = time.perf_counter()
            work()
            self.wait()
            took.append(time.perf_counter() - began)
        return min(took[1:])

    def fits(self, work: Callable[[], dict[str, Any]], **where: Any) -> dict[str, Any]:
        """One point of a series. Out of memory is a result; any other error ends the experiment."""
        from burst_device import kind_of

        self.machine.reset_peak()
        try:
            return {**where, **work(), "peak_gib": round(self.machine.peak_gib(), 3)}
        except Exception as error:
            if kind_of(error) != "memory":
                raise
        self.machine.release()  # outside of `except`: the traceback holds tensors
        return {**where, "out_of_memory": True}


def make_t3(s: Setting, turbo: bool) -> Any:
    published.LAYERS = s.pick(24 if turbo else 30, 2)
    t3 = published.make_t3(turbo)
    t3.hp.stop_speech_token = NEVER
    for parameter in t3.parameters():  # buffers keep their numbers, as with real weights
        parameter.data = parameter.data.to(s.number)
        parameter.requires_grad_(False)
    return t3.to(s.device)


def make_rows(s: Setting, t3: Any, turbo: bool, shape: list[tuple[int, int]], first_seed: int = 0) -> list[Any]:
    """SHAPE: tokens of the prompt and of the speech, row by row."""
    from chatterbox_t3 import Row

    rows = []
    for i, (prompt, cap) in enumerate(shape, first_seed):
        generator = s.torch.Generator().manual_seed(i)
        x = s.torch.randn(prompt, t3.dim, generator=generator).to(s.device, s.number)
        rows.append(Row(x, i, cap, blank=None if turbo else x, guidance=0.0 if turbo else 0.5))
    return rows


def make_sound(s: Setting, turbo: bool) -> tuple[Any, dict[str, Any]]:
    """With the voice of a sample of 10 s."""
    from chatterbox.models.s3gen import S3Gen
    from chatterbox_sound import Sound

    torch, n = s.torch, s.pick(250, 10)
    torch.manual_seed(5)
    sound = Sound(S3Gen(meanflow=turbo).eval().requires_grad_(False).to(s.device), s.pick(2 if turbo else 10, 1))
    return sound, {"prompt_token": torch.randint(0, 6000, (1, n)), "prompt_feat": torch.randn(1, 2 * n, 80), "embedding": torch.randn(1, 192)}


def make_engine(s: Setting, turbo: bool) -> Any:
    """The worker's engine, as far as rehearse() needs it."""
    import types

    from engine_chatterbox import Chatterbox

    engine = Chatterbox("turbo" if turbo else "regular")
    engine.where, engine.number, engine.progress = s.device, s.number, lambda _: None
    engine.model = types.SimpleNamespace(t3=make_t3(s, turbo))
    engine.sound, voice = make_sound(s, turbo)
    engine.voices[""] = types.SimpleNamespace(gen=voice)
    engine.loop = engine.make_loop()
    return engine


def make_loop(s: Setting, t3: Any, turbo: bool, graphs: bool) -> Any:
    """On a processor a stand-in records."""
    from burst_graphs import CudaTape, Graphs
    from chatterbox_loop import Loop, RecordedLoop

    if not graphs:
        return Loop(t3, turbo)
    import tape

    return RecordedLoop(t3, turbo, Graphs(CudaTape(s.torch) if s.cuda else tape.CpuTape(), runs_first=1), 1)


def recorded(loop: Any) -> dict[str, Any]:
    graphs = getattr(loop, "graphs", None)
    return {"recorded": len(graphs.replays), "replayed": graphs.replayed, "graphs_gib": graphs.held_gib()} if graphs else {}


def step_times(s: Setting, loop: Any, rows: list[Any]) -> tuple[float, list[float]]:
    """Seconds until the first token, and of each step after it."""
    from chatterbox_t3 import Speech

    at: list[float] = []

    def note(_: str) -> None:
        s.wait()
        at.append(time.perf_counter())

    speech = Speech(loop.model.t3, rows, loop.model.turbo, note, loop=loop)
    s.wait()
    began = time.perf_counter()
    speech.speak()
    return at[0] - began, [b - a for a, b in zip(at, at[1:])]


def driver() -> Optional[str]:
    import subprocess

    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip().splitlines()[0] if asked.returncode == 0 and asked.stdout.strip() else None


def facts(s: Setting) -> dict[str, Any]:
    from importlib import metadata

    def version(package: str) -> Optional[str]:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    return {"card": s.machine.gpu or "none", "card_gib": round(s.machine.total_gib(), 2), "driver": driver() if s.cuda else None,
            "torch": s.torch.__version__, "cuda": s.torch.version.cuda,
            "packages": {name: version(name) for name in ("chatterbox-tts", "transformers", "diffusers")}}
