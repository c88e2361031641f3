"""Steps batches of Chatterbox: in slots of their own, or in slots with fixed addresses, so that steps can be recorded."""
from __future__ import annotations

from typing import Any, Optional

import torch

from burst_graphs import Graphs
from burst_probe import SIZES
from chatterbox_slots import Model, Slots

WINDOW = 64            # a step reads a multiple of this many slots
RECORDED_WINDOW = 256  # the same with recordings; each pair of slots and places has one
CHECK_STEPS = 8        # steps between reads of the tokens, each of which waits for the GPU


def round_up(n: int, to: int) -> int:
    return -(-n // to) * to


class Loop:
    """Gives each batch its own slots, and as many places as rows."""

    def __init__(self, t3: Any, turbo: bool) -> None:
        self.model = Model(t3, turbo)
        self.check_steps = CHECK_STEPS if self.model.device.type == "cuda" else 1

    def places(self, rows: int) -> int:
        """Number of places of a batch with this many rows."""
        return rows

    def window(self, used: int) -> int:
        """Number of slots that a step reads if this many are in use."""
        return round_up(used, WINDOW)

    def slots(self, texts: int, wide: int, slots: int) -> Slots:
        """Returns cleared slots for TEXTS texts of WIDE rows."""
        return Slots(self.model, texts, wide, self.window(slots))

    def step(self, s: Slots, texts: int, wide: int, window: int) -> None:
        self.model.advance(s, texts, wide, window)

    def expect(self, texts: int) -> None:
        """No batch will have more texts."""

    def record(self, texts: int) -> None:
        """Records the step that needs the most memory first. Overwrites the slots."""

    def release(self) -> None:
        """Drops what is kept between batches."""

    def held_gib(self) -> float:
        """Memory of all possible recordings, without the slots."""
        return 0.0


class RecordedLoop(Loop):
    """All batches share the slots, and the numbers of places and of slots that a step reads are rounded, so that few recordings suffice.
    If recording is off, it behaves like Loop."""

    def __init__(self, t3: Any, turbo: bool, graphs: Graphs, slots: int) -> None:
        """SLOTS: number for the longest usual text."""
        super().__init__(t3, turbo)
        self.graphs, self.least = graphs, slots
        self.wide, self.texts = 1 if turbo else 2, 1
        self.kept: Optional[Slots] = None

    def places(self, rows: int) -> int:
        return super().places(rows) if self.graphs.off else min((size for size in SIZES if size >= rows), default=rows)

    def window(self, used: int) -> int:
        return super().window(used) if self.graphs.off else round_up(used, RECORDED_WINDOW)

    def expect(self, texts: int) -> None:
        self.texts = self.places(texts)

    def slots(self, texts: int, wide: int, slots: int) -> Slots:
        if self.graphs.off:
            self.kept = None
            return super().slots(texts, wide, slots)
        if self.kept is None or texts > self.kept.texts or wide > self.kept.wide or self.window(slots) > self.kept.slots:
            self.grow(max(texts, self.texts), max(wide, self.wide), max(slots, self.least))
        self.kept.clear(texts * wide, self.window(slots))
        return self.kept

    def grow(self, texts: int, wide: int, slots: int) -> None:
        kept = self.kept
        if kept:
            texts, wide, slots = max(texts, kept.texts), max(wide, kept.wide), max(slots, kept.slots)
        del kept
        self.forget()
        self.kept = Slots(self.model, texts, wide, self.window(slots))

    def forget(self) -> None:
        self.kept = None
        self.graphs.clear()  # recordings hold the slots' addresses

    def release(self) -> None:
        self.texts = 1  # the expected number did not fit
        self.forget()

    def step(self, s: Slots, texts: int, wide: int, window: int) -> None:
        self.graphs.run((texts, wide, window), lambda: self.model.advance(s, texts, wide, window), s.state())

    def record(self, texts: int) -> None:
        if self.kept and not self.graphs.off and not self.graphs.full:
            places, s = self.places(texts), self.kept
            step = (places, s.wide, s.slots)
            if step not in self.graphs.replays:
                with torch.inference_mode(), self.model.kernels():
                    self.graphs.record(step, lambda: self.model.advance(s, *step), s.state())

    def held_gib(self) -> float:
        if not self.kept:
            return 0.0
        sizes = sum(size <= self.kept.texts for size in SIZES)
        return self.graphs.held_gib(sizes * (self.kept.slots // RECORDED_WINDOW))
