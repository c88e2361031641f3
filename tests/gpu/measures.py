"""The experiments, each a function of the setting that returns what goes into the JSON."""
from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import twin
from twin import Setting

SAMPLE_STEPS = 24


def steps_of(s: Setting, turbo: bool) -> dict[str, Any]:
    """Milliseconds a step over rows and context: as it comes, and replayed as a CUDA graph."""
    t3, points = twin.make_t3(s, turbo), []
    steps = s.pick(SAMPLE_STEPS, 4)
    for context in s.pick((200, 400, 800), (12, 20)):
        for b in s.pick((1, 2, 4, 8, 16, 32, 64, 128), (1, 2)):
            for mode in ("eager", "graph"):
                def measure() -> dict[str, Any]:
                    loop = twin.make_loop(s, t3, turbo, mode == "graph")
                    rows = twin.make_rows(s, t3, turbo, [(context, steps)] * b)
                    twin.step_times(s, loop, rows)
                    first, took = twin.step_times(s, loop, rows)
                    return {"first_ms": 1000 * first, "step_ms": 1000 * statistics.median(took), **twin.recorded(loop)}

                points.append(s.fits(measure, b=b, context=context, mode=mode))
    return {"number": str(s.number), "rows_a_text": 1 if turbo else 2, "points": points}


def e1(s: Setting) -> dict[str, Any]:
    """Steps of the language model (Llama, with guidance)."""
    return steps_of(s, False)


def e2(s: Setting) -> dict[str, Any]:
    """Steps of Turbo's language model (GPT-2). The loop shares no prefix between rows."""
    return steps_of(s, True)


def e3(s: Setting) -> dict[str, Any]:
    """The flow of S3Gen, tokens to mel frames, by precision."""
    torch, points = s.torch, []
    sound, voice = twin.make_sound(s, False)
    speech = [torch.randint(0, 6561, (max(s.pick((250, 500, 750), (10,))),))]
    for precision in ("fp32", "tf32", "bf16"):
        torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
        for tokens in s.pick((250, 500, 750), (10,)):
            for b in s.pick((1, 2, 4, 8, 16, 32), (1, 2)):
                @torch.inference_mode()
                def flow() -> Any:
                    with torch.autocast(s.device, torch.bfloat16, enabled=precision == "bf16"):
                        return sound.mels([speech[0][:tokens].to(s.device)] * b, voice, sound.generators(range(b)))

                points.append(s.fits(lambda: {"seconds": s.seconds(flow)}, b=b, tokens=tokens, precision=precision))
    return {"steps": sound.steps, "sample_tokens": voice["prompt_token"].size(1), "points": points}


def e4(s: Setting) -> dict[str, Any]:
    """The vocoder, mel frames to samples."""
    torch, points = s.torch, []
    sound, _ = twin.make_sound(s, False)
    for frames in s.pick((500, 1000, 1500), (20,)):
        for b in s.pick((1, 2, 4, 8, 16, 32), (1, 2)):
            @torch.inference_mode()
            def vocode() -> Any:
                return sound.vocode(torch.randn(b, 80, frames, device=s.device), [frames] * b, sound.generators(range(b)))

            points.append(s.fits(lambda: {"seconds": s.seconds(vocode)}, b=b, frames=frames))
    return {"points": points}


class Part:
    """A share of a card, as torch lets this process have it."""

    def __init__(self, s: Setting, share: float) -> None:
        self.machine, self.share = s.machine, share
        if s.cuda:
            s.torch.cuda.set_per_process_memory_fraction(share)

    def total_gib(self) -> float:
        return self.share * self.machine.total_gib()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


def e5(s: Setting) -> dict[str, Any]:
    """Memory over rows; then the worker's probe in a part of the card beside the true edge there."""
    from burst_probe import SHARE, attempt, measure

    found = {}
    for turbo in (False, True):
        engine = twin.make_engine(s, turbo)
        if s.small:
            engine.wave_budget = 0.0
            shrink(engine)
        points = [s.fits(lambda: engine.rehearse(b) or {"held_gib": round(engine.held_gib(), 3)}, b=b) for b in s.pick((1, 2, 4, 8, 16, 24, 32, 48, 64), (1, 2))]
        kind: dict[str, Any] = {"points": points}
        if s.cuda:
            part = Part(s, 0.3)
            kind["part_gib"], kind["share"], kind["probe"] = part.total_gib(), SHARE, measure(engine, part, 1)
            low, high = kind["probe"], 2 * kind["probe"] + 8
            while low + 1 < high:
                middle = (low + high) // 2
                low, high = (low, middle) if attempt(engine, part, middle) is None else (middle, high)
            kind["edge"] = low
            Part(s, 1.0)
        else:
            kind["probe"] = "not measured: a processor has no memory of its own to probe"
        found["turbo" if turbo else "regular"] = kind
        del engine
        s.machine.release()
    return found


def shrink(engine: Any) -> None:
    import engine_chatterbox

    engine_chatterbox.LONGEST_PROMPT, engine_chatterbox.LONGEST_SPEECH = 20, 20


def e6(s: Setting) -> dict[str, Any]:
    """A batch that cannot fit, then one that can: is the memory back?"""
    from burst_probe import attempt

    engine = twin.make_engine(s, False)
    if s.small:
        shrink(engine)
    attempt(engine, s.machine, 1)
    s.machine.release()
    before, rehearse = s.machine.free_gib(), engine.rehearse
    too_many = s.pick(4096, 2)
    if not s.cuda:
        engine.rehearse = lambda b: rehearse(b) if b < too_many else s.torch.empty(1 << 60)
    failed = attempt(engine, s.machine, too_many) is None
    after = s.machine.free_gib()
    return {"b": too_many, "ran_out": failed, "free_before_gib": before, "free_after_gib": after,
            "next_batch_fits": attempt(engine, s.machine, 1) is not None}


def e7(s: Setting) -> dict[str, Any]:
    """The same seeds alone and in one batch, and in one batch without and with CUDA graphs: how many token lists are equal."""
    from chatterbox_t3 import Speech

    b, cap, found = s.pick(64, 4), s.pick(100, 6), {}
    for turbo in (False, True):
        t3 = twin.make_t3(s, turbo)
        shape = [(s.pick(120, 12) + 7 * i % 90, cap) for i in range(b)]
        together = Speech(t3, twin.make_rows(s, t3, turbo, shape), turbo, lambda _: None).speak()
        loop = twin.make_loop(s, t3, turbo, True)
        replayed = Speech(t3, twin.make_rows(s, t3, turbo, shape), turbo, lambda _: None, loop=loop).speak()
        graphs = sum(s.torch.equal(a.tokens, b.tokens) for a, b in zip(together, replayed))
        equal, agree = 0, []
        for i in range(b):
            alone = Speech(t3, twin.make_rows(s, t3, turbo, shape[i:i + 1], i), turbo, lambda _: None).speak()[0].tokens
            same = (alone == together[i].tokens).tolist()
            equal += all(same)
            agree.append(same.index(False) if False in same else cap)
        found["turbo" if turbo else "regular"] = {"b": b, "tokens": cap, "equal": equal, "equal_with_graphs": graphs,
                                                 **twin.recorded(loop), "first_tokens_equal_median": statistics.median(agree)}
    return found


def e8(s: Setting) -> dict[str, Any]:
    """Reading weights: a memory map against eight threads, each into the card; imports; building the model."""
    import safetensors.torch
    from burst_read import Reader, assign, bare
    from chatterbox.models.t3 import T3

    began = time.perf_counter()
    with bare():
        model = T3()
    build = time.perf_counter() - began
    found: dict[str, Any] = {"build_s": build}
    command = [sys.executable, "-c", "import torch, chatterbox.models.t3, chatterbox.models.s3gen"]
    found["import_s"] = s.seconds(lambda: subprocess.run(command, check=True), times=1)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    if not s.small:
        weights = {name: s.torch.randn(p.shape).to(s.torch.bfloat16) for name, p in weights.items()}
    else:
        weights = {name: p for name, p in list(weights.items())[:4]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t3.safetensors")
        safetensors.torch.save_file({name: p.clone().contiguous() for name, p in weights.items()}, path)
        os.sync()
        found["file_gib"] = os.path.getsize(path) / (1 << 30)
        found["map_s"] = timed_read(s, path, lambda: safetensors.torch.load_file(path))

        def threads() -> dict[str, Any]:
            reader = Reader([path])
            tensors = reader.tensors(path)
            reader.close()
            return tensors

        found["threads_s"] = timed_read(s, path, threads)
        if not s.small:
            began = time.perf_counter()
            assign(model, threads())
            model.to(s.device)
            s.wait()
            found["read_assign_move_s"] = time.perf_counter() - began
    found["cold"] = "pages dropped with posix_fadvise before each reading: a disk of this machine, not a network volume"
    return found


def timed_read(s: Setting, path: str, read: Any) -> float:
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    began = time.perf_counter()
    moved = [tensor.to(s.device) for tensor in read().values()]
    s.wait()
    return time.perf_counter() - began if moved else 0.0


def batch_seconds(s: Setting, engine: Any, turbo: bool, tokens: list[int]) -> dict[str, float]:
    """A whole batch: the language model, then the sound in the engine's sub-batches, longest first."""
    from chatterbox_t3 import Speech

    t3, voice = engine.model.t3, engine.voices[""].gen
    shape = [(s.pick(160 if not turbo else 500, 12) + n // 2, n) for n in tokens]
    s.wait()
    began = time.perf_counter()
    spoken = Speech(t3, twin.make_rows(s, t3, turbo, shape), turbo, lambda _: None, loop=engine.loop).speak()
    s.wait()
    between = time.perf_counter()
    rows = sorted((row.tokens.clamp(max=6560) for row in spoken), key=len, reverse=True)
    while rows:
        each = 2.0 * (len(rows[0]) + voice["prompt_token"].size(1))
        n = max(1, min(len(rows), engine.wave_batch, int(engine.wave_budget / each)))
        for wave in engine.sound.waves(rows[:n], voice, range(n)):
            wave.float().cpu()
        rows = rows[n:]
    s.wait()
    return {"tokens_s": between - began, "waves_s": time.perf_counter() - between}


def e9(s: Setting) -> dict[str, Any]:
    """Whole batches, for the prior; then lines by length against lines as they come."""
    chance, found = random.Random(9), {}
    for turbo in (False, True):
        engine, points = twin.make_engine(s, turbo), []
        batch_seconds(s, engine, turbo, [8, 9])
        for b in s.pick((1, 2, 4, 8, 16, 32, 64), (1, 2)):
            for least, most in s.pick(((40, 40), (150, 150), (30, 150)), ((4, 4), (8, 8), (3, 8))):
                chars = [chance.randint(least, most) for _ in range(b)]
                tokens = [max(1, round(n * twin.TOKENS_A_CHAR)) for n in chars]

                def measure() -> dict[str, Any]:
                    parts = batch_seconds(s, engine, turbo, tokens)
                    return {**parts, "seconds": sum(parts.values())}

                points.append(s.fits(measure, b=b, longest=max(chars), sum=sum(chars)))
        lengths = [chance.randint(*s.pick((50, 250), (3, 8))) for _ in range(s.pick(64, 4))]
        at_once = s.pick(16, 2)

        def total(order: list[int]) -> float:
            return sum(sum(batch_seconds(s, engine, turbo, order[i:i + at_once]).values()) for i in range(0, len(order), at_once))

        found["turbo" if turbo else "regular"] = {
            "points": points, "rows": len(lengths), "batches_of": at_once, "by_length_s": total(sorted(lengths, reverse=True)),
            "as_they_come_s": total(lengths), "rows_do_not_leave_s": total([max(lengths)] * len(lengths))}
        del engine
        s.machine.release()
    return found


ALL = {f.__name__.upper(): f for f in (e1, e2, e3, e4, e5, e6, e7, e8, e9)}
