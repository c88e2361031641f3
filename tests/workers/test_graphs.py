"""Recorded steps. First what decides about recordings, with numbers in place of tensors and a card in memory. Then Chatterbox's loop over
fixed slots, whose steps tape.py records on the processor: needs the packages of test_chatterbox.py."""
from __future__ import annotations

import contextlib
import io
import os
import tempfile
import types
import unittest
from typing import Any, Callable, Optional
from unittest import mock

import test_chatterbox as twin  # goes on under the Python that has the packages

import burst_graphs
from burst_device import DeviceLost
from burst_graphs import CudaTape, Graphs

if not twin.MISSING:
    import torch
    from chatterbox_loop import Loop, RecordedLoop
    from chatterbox_t3 import Speech
    from tape import CpuTape, Recording, address


def silent(work: Callable[[], Any]) -> tuple[Any, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        result = work()
    return result, said.getvalue()


class Cell:
    """A tensor of one whole number."""

    def __init__(self, value: int) -> None:
        self.value = value

    def clone(self) -> "Cell":
        return Cell(self.value)

    def copy_(self, other: "Cell") -> None:
        self.value = other.value

    def is_floating_point(self) -> bool:
        return False

    def __eq__(self, other: object) -> Any:
        return types.SimpleNamespace(all=lambda: isinstance(other, Cell) and self.value == other.value)


class Tape:
    """Replays what it is told to."""

    def __init__(self, replay: Optional[Callable[[], None]] = None, error: Optional[Exception] = None) -> None:
        self.replay, self.error, self.free, self.cleared, self.lost = replay, error, 10.0, 0, False

    def run(self, step: Callable[[], None]) -> None:
        step()

    def record(self, step: Callable[[], None]) -> Callable[[], None]:
        if self.error:
            raise self.error
        return self.replay or step

    def check(self) -> None:
        if self.lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def clear(self) -> None:
        self.cleared += 1

    def free_gib(self) -> float:
        return self.free

    def shared_gib(self) -> float:
        return 0.5

    def each_gib(self) -> float:
        return 0.25


class Decisions(unittest.TestCase):
    def setUp(self) -> None:
        self.cell, self.stepped = Cell(0), 0

    def step(self) -> None:
        self.stepped += 1
        self.cell.value += 1

    def run_steps(self, graphs: Graphs, n: int, key: Any = "key") -> str:
        return silent(lambda: [graphs.run(key, self.step, [self.cell]) for _ in range(n)])[1]

    def test_a_step_is_recorded_once_it_has_run_often_enough(self) -> None:
        def replay() -> None:
            self.cell.value += 1

        graphs = Graphs(Tape(replay), runs_first=3)
        self.assertEqual(self.run_steps(graphs, 10), "")
        self.assertEqual((self.cell.value, self.stepped, graphs.replayed), (10, 4, 6))
        self.run_steps(graphs, 3, "another")
        self.assertEqual(list(graphs.replays), ["key"])

    def test_a_replay_that_differs_turns_recording_off_and_each_step_counts_once(self) -> None:
        def replay() -> None:
            self.cell.value += 2

        tape = Tape(replay)
        graphs = Graphs(tape, runs_first=3)
        said = self.run_steps(graphs, 10)
        self.assertEqual((self.cell.value, graphs.off, graphs.replays), (10, True, {}))
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("tensor 0 of its state is another; all steps run without", said)
        self.assertEqual(tape.cleared, 1)

    def test_a_recording_that_fails_turns_recording_off(self) -> None:
        graphs = Graphs(Tape(error=RuntimeError("CUDA error: operation not permitted when stream is capturing")), runs_first=3)
        said = self.run_steps(graphs, 10)
        self.assertEqual((self.cell.value, graphs.off), (10, True))
        self.assertIn("operation not permitted", said)

    def test_a_device_that_is_lost_meanwhile_is_no_small_matter(self) -> None:
        tape = Tape(error=RuntimeError("CUDA error: an illegal memory access was encountered"))
        tape.lost = True
        with self.assertRaisesRegex(RuntimeError, "illegal memory access"):
            self.run_steps(Graphs(tape, runs_first=0), 1)

    def test_without_memory_what_is_recorded_stays(self) -> None:
        tape = Tape()
        graphs = Graphs(tape, runs_first=0)
        self.run_steps(graphs, 2, "first")
        tape.free = 0.1
        said = self.run_steps(graphs, 3, "second")
        tape.free = 10.0
        said += self.run_steps(graphs, 3, "third")
        self.assertEqual((self.cell.value, list(graphs.replays), graphs.off), (8, ["first"], False))
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("1 recorded; no memory is left for more", said)
        tape.error = RuntimeError("CUDA out of memory")
        graphs.full = False
        self.run_steps(graphs, 2, "fourth")
        self.assertEqual((self.cell.value, list(graphs.replays), graphs.full, graphs.off), (10, ["first"], True, False))

    def test_there_is_a_most(self) -> None:
        graphs = Graphs(Tape(), runs_first=0)
        said = "".join(self.run_steps(graphs, 1, i) for i in range(burst_graphs.MOST + 2))
        self.assertEqual(len(graphs.replays), burst_graphs.MOST)
        self.assertIn(f"{burst_graphs.MOST} are enough", said)

    def test_memory_of_those_that_may_come_counts(self) -> None:
        graphs = Graphs(Tape(), runs_first=0)
        self.assertEqual(graphs.held_gib(20), 0.0)
        self.run_steps(graphs, 1)
        self.assertEqual((graphs.held_gib(), graphs.held_gib(20)), (0.5 + 0.25, 0.5 + 20 * 0.25))
        self.assertEqual(graphs.held_gib(1000), 0.5 + burst_graphs.MOST * 0.25)

    def test_the_environment_turns_it_off(self) -> None:
        for value, wanted in ((None, True), ("1", True), ("0", False)):
            with mock.patch.dict(os.environ):
                os.environ.pop("BURST_CUDA_GRAPHS", None)
                if value is not None:
                    os.environ["BURST_CUDA_GRAPHS"] = value
                self.assertEqual(burst_graphs.wanted(), wanted)


class FirstTime(unittest.TestCase):
    """What an earlier process has left when its driver ended it."""

    def setUp(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        changed = mock.patch.dict(os.environ, {"HOME": self.home.name})
        changed.start()
        self.addCleanup(changed.stop)

    def may(self, about: str = "card") -> bool:
        def ask() -> bool:
            with burst_graphs.first_time(about) as may:
                return may
        return silent(ask)[0]

    def end_during(self) -> None:
        child = os.fork()
        if child == 0:
            with burst_graphs.first_time("card"):
                os._exit(1)
        os.waitpid(child, 0)

    def test_after_one_that_ended_there_are_none(self) -> None:
        self.assertTrue(self.may())
        self.assertTrue(self.may())
        self.end_during()
        self.assertFalse(self.may())
        self.assertFalse(self.may(), "nor the next one")
        self.assertTrue(self.may("another card"))

    def test_an_error_leaves_it_too(self) -> None:
        with self.assertRaisesRegex(DeviceLost, "unspecified launch failure"), burst_graphs.first_time("card"):
            raise RuntimeError("CUDA error: unspecified launch failure")
        self.assertTrue(self.may(), "it is this process that failed: the next one asks")
        with self.assertRaises(KeyError), burst_graphs.first_time("card"):
            raise KeyError("not the card's fault")
        name = next(name for name in os.listdir(self.home.name) if name.startswith(".burst-graphs-"))
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with open(os.path.join(self.home.name, name), "w", encoding="utf-8") as f:
            f.write(str(child))
        self.assertFalse(self.may())

    def test_one_beside_that_is_at_it_is_no_reason(self) -> None:
        self.assertTrue(self.may())
        with burst_graphs.first_time("card"):
            child = os.fork()
            if child == 0:
                os._exit(0 if self.may() else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Card:
    """torch.cuda with a card of 1000 MiB. A recording takes 20 MiB of the pool, the first time, and 3 MiB of the driver."""

    MIB = 1 << 20

    def __init__(self) -> None:
        self.now, self.used, self.reserved, self.allocated, self.calls, self.fails = "main", 300, 200, 150, [], False
        self.cuda = self
        outer = self

        class Stream:
            def wait_stream(self, other: Any) -> None:
                outer.calls.append("wait")

        class CUDAGraph:
            def pool(self) -> str:
                return "pool"

            def replay(self) -> None:
                outer.calls.append("replay")

        self.Stream, self.CUDAGraph = Stream, CUDAGraph

    def current_stream(self) -> Any:
        return self.now if self.now != "main" else types.SimpleNamespace(wait_stream=lambda other: self.calls.append("waited"))

    def set_stream(self, stream: Any) -> None:
        self.now = stream

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Any:
        before, self.now = self.now, stream
        yield
        self.now = before

    @contextlib.contextmanager
    def graph(self, graph: Any, pool: Any, stream: Any, capture_error_mode: str) -> Any:
        self.calls.append((pool, capture_error_mode))
        self.now = stream
        yield
        if self.fails:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # and the stream stays
        grows = 0 if pool else 20
        self.reserved += grows
        self.used += grows + 3
        self.now = "main"

    def synchronize(self) -> None: ...

    def empty_cache(self) -> None: ...

    def mem_get_info(self) -> tuple[int, int]:
        return (1000 - self.used) * self.MIB, 1000 * self.MIB

    def memory_reserved(self) -> int:
        return self.reserved * self.MIB

    def memory_allocated(self) -> int:
        return self.allocated * self.MIB


class Cuda(unittest.TestCase):
    def test_recordings_share_a_pool_and_say_what_they_hold(self) -> None:
        card = Card()
        tape = CudaTape(card)
        ran = []
        tape.run(lambda: ran.append(card.now))
        self.assertEqual((ran, card.now), ([tape.stream], "main"))
        replays = [tape.record(lambda: None) for _ in range(3)]
        self.assertEqual([call for call in card.calls if isinstance(call, tuple)], [(None, "thread_local"), ("pool", "thread_local"), ("pool", "thread_local")])
        self.assertAlmostEqual(tape.shared_gib() * 1024, 20)
        self.assertAlmostEqual(tape.each_gib() * 1024, 3)
        # free on the card, and what torch holds and does not use, without the pool
        self.assertAlmostEqual(tape.free_gib() * 1024, 1000 - 329 + 220 - 150 - 20)
        replays[0]()
        self.assertEqual(card.calls[-1], "replay")
        tape.clear()
        self.assertEqual((tape.pool, tape.shared_gib(), tape.each_gib()), (None, 0, 0))

    def test_a_recording_that_fails_leaves_the_stream_as_it_was(self) -> None:
        card = Card()
        tape = CudaTape(card)
        card.fails = True
        with mock.patch.object(card, "current_stream", lambda: "main"), self.assertRaisesRegex(RuntimeError, "previous error"):
            tape.record(lambda: None)
        self.assertEqual((card.now, tape.recorded), ("main", 0))


@unittest.skipIf(twin.MISSING, twin.MISSING)
class Recorded(unittest.TestCase):
    case: Any = twin.Regular
    turbo = False

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        case = cls.case
        case.t3, case.texts = twin.make_t3(cls.turbo), twin.make_texts(16)
        case.t3.hp.stop_speech_token = case.common_token()
        cls.rows = [case.row(i) for i in range(11)]
        cls.alone = cls.tokens(cls.rows, Loop(case.t3, cls.turbo))

    @classmethod
    def tokens(cls, rows: Any, loop: Any) -> list[list[int]]:
        return [spoken.tokens.tolist() for spoken in Speech(cls.case.t3, rows, cls.turbo, lambda _: None, loop=loop).speak()]

    def loop(self, tape: Any = None, runs_first: int = 1) -> Any:
        loop = RecordedLoop(self.case.t3, self.turbo, Graphs(tape or CpuTape(), runs_first), 100)
        loop.check_steps = 3
        return loop

    def test_replays_speak_the_same(self) -> None:
        loop = self.loop()
        self.assertEqual(self.tokens(self.rows, loop), self.alone)
        recorded, replayed = len(loop.graphs.replays), loop.graphs.replayed
        self.assertEqual(self.tokens(self.rows[::-1], loop), self.alone[::-1])
        self.assertEqual(self.tokens(self.rows[3:8], loop), self.alone[3:8])
        self.assertGreater(recorded, 2, "one for each number of places")
        self.assertGreater(loop.graphs.replayed, 2 * replayed)
        self.assertFalse(loop.graphs.off)

    def test_a_recording_reads_its_slots_and_the_weights_alone(self) -> None:
        tape = CpuTape()
        loop = self.loop(tape)
        self.tokens(self.rows, loop)
        t3 = self.case.t3
        known = {address(tensor): name for name, tensor in (*t3.named_parameters(), *t3.named_buffers(), *vars(loop.kept).items())
                 if isinstance(tensor, torch.Tensor)}
        slots = {address(tensor) for tensor in vars(loop.kept).values() if isinstance(tensor, torch.Tensor)}
        self.assertGreater(len(tape.recordings), 2)
        for recording in tape.recordings:
            self.assertEqual([tensor.shape for at, tensor in recording.found.items() if at not in known], [])
            self.assertLessEqual(set(recording.written), slots)
            state = {address(tensor) for tensor in (*loop.kept.state(), loop.kept.keys, loop.kept.values)}
            self.assertLessEqual(set(recording.written), state, "a proof looks at all that changes")

    def test_the_tape_refuses_what_a_card_cannot_record(self) -> None:
        x = torch.zeros(3)
        for name, step in {"a number read": lambda: x[0].item(), "a number brought": lambda: x.add_(torch.tensor([1.0, 2.0, 3.0])),
                           "a size that depends": lambda: x.nonzero()}.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "not permitted"):
                CpuTape().record(step)
        self.assertEqual(x.tolist(), [0, 0, 0])

    def test_what_python_knew_does_not_change_in_a_replay(self) -> None:
        """So that a step that depended on a number of Python would be found out here as on a card."""
        x, add = torch.zeros(3), [1.0]
        replay = CpuTape().record(lambda: x.add_(add[0]))
        self.assertEqual(x.tolist(), [0, 0, 0])
        add[0] = 5.0
        replay()
        self.assertEqual(x.tolist(), [1, 1, 1])

    def test_recordings_that_differ_or_fail_are_not_used(self) -> None:
        class Wrong(CpuTape):
            def record(self, step: Any) -> Any:
                replay = super().record(step)
                return lambda: (replay(), slots().token.add_(1), slots().chosen.add_(1))

        class Failing(CpuTape):
            def record(self, step: Any) -> Any:
                raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

        for tape in (Wrong(), Failing()):
            loop = self.loop(tape)
            slots = lambda: loop.kept
            spoken, said = silent(lambda: self.tokens(self.rows, loop))
            self.assertEqual(spoken, self.alone)
            self.assertTrue(loop.graphs.off)
            self.assertEqual(said.count("CUDA graphs: off"), 1, said)
            self.assertEqual(self.tokens(self.rows[:5], loop), self.alone[:5])
            self.assertIsNone(loop.kept)

    def test_logits_apart_are_found(self) -> None:
        a = torch.tensor([4.0, float("nan"), -2.0])
        self.assertEqual(burst_graphs.difference([a], [a + 0.01]), "")
        self.assertIn("logits differ by 0.1, of at most 4", burst_graphs.difference([a], [a + 0.1]))
        self.assertIn("logits differ", burst_graphs.difference([torch.ones(3)], [torch.tensor([1.0, float("nan"), 1.0])]))

    def test_what_a_broken_batch_has_left_is_not_heard(self) -> None:
        loop = self.loop()
        self.tokens(self.rows[:4], loop)
        with torch.inference_mode():
            for tensor in (loop.kept.keys, loop.kept.values, loop.kept.logits):
                tensor.fill_(float("nan"))
        self.assertEqual(self.tokens(self.rows[:4], loop), self.alone[:4])

    def test_a_larger_batch_makes_the_slots_anew(self) -> None:
        loop = self.loop()
        self.tokens(self.rows[:2], loop)
        small = loop.kept
        self.assertEqual(self.tokens(self.rows, loop), self.alone)
        self.assertIsNot(loop.kept, small)
        kept = loop.kept
        self.assertEqual(self.tokens(self.rows[:2], loop), self.alone[:2])
        self.assertIs(loop.kept, kept)
        loop.release()
        self.assertEqual((loop.kept, loop.graphs.replays), (None, {}))
        loop.expect(5)
        self.tokens(self.rows[:1], loop)
        self.assertEqual(loop.kept.texts, 8)

    def test_the_largest_window_can_be_recorded_first(self) -> None:
        tape = CpuTape()
        loop = self.loop(tape)
        self.tokens(self.rows[:3], loop)
        loop.record(3)
        self.assertIn((4, loop.kept.wide, loop.kept.slots), loop.graphs.replays)
        self.assertEqual(loop.held_gib(), 0.5 + 0.25 * max(len(loop.graphs.replays), 3 * loop.kept.slots // 256))
        self.assertEqual(self.tokens(self.rows[:3], loop), self.alone[:3])


class RecordedTurbo(Recorded):
    case = twin.Turbo
    turbo = True


@unittest.skipIf(twin.MISSING, twin.MISSING)
class WholeEngine(unittest.TestCase):
    def engine(self, tape: Any, folder: str) -> Any:
        import engine_chatterbox

        with mock.patch.object(engine_chatterbox.Chatterbox, "make_tape", lambda _: tape), \
                mock.patch.multiple(engine_chatterbox, LONGEST_PROMPT=60, LONGEST_SPEECH=60), \
                mock.patch.dict(os.environ, {"HOME": folder}):
            return twin.make_engine(folder)

    def test_it_proves_a_recording_before_it_renders(self) -> None:
        from burst_engine import Task

        tape = CpuTape()
        with tempfile.TemporaryDirectory() as folder:
            engine = self.engine(tape, folder)
            self.assertEqual([name for name in os.listdir(folder) if name.startswith(".burst-graphs")], [])
            self.assertEqual(list(engine.loop.graphs.replays), [(2, 2, 256)])
            plain = self.engine(None, folder)
        tasks = [Task(f"s{i}", "", "A line of the test. " * (1 + i), None, None, i, {}) for i in range(3)]
        engine.expect(3)
        engine.loop.graphs.runs_first = 1
        recorded, eager = engine.tokens(tasks), plain.tokens(tasks)
        self.assertEqual([row.tolist() for row in recorded], [row.tolist() for row in eager])
        self.assertGreater(engine.loop.graphs.replayed, 5)
        self.assertGreater(engine.held_gib(), 0)
        engine.release()
        self.assertEqual((engine.held_gib(), plain.held_gib()), (0.0, 0.0))

    def test_without_memory_for_recordings_it_does_without(self) -> None:
        class Full(CpuTape):
            def run(self, step: Any) -> None:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

        with tempfile.TemporaryDirectory() as folder:
            engine, said = silent(lambda: self.engine(Full(), folder))
        self.assertTrue(engine.loop.graphs.off)
        self.assertIn("no memory is left for them", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
