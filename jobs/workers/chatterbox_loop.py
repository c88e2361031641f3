"""How batches of Chatterbox are stepped."""
from __future__ import annotations

from typing import Any

from chatterbox_slots import Model, Slots

WINDOW = 64      # a step looks at a multiple of so many slots
CHECK_STEPS = 8  # on a GPU: reading the tokens waits for it


def round_up(n: int, to: int) -> int:
    return -(-n // to) * to


class Loop:
    """Each batch has slots of its own, and as many places as rows."""

    def __init__(self, t3: Any, turbo: bool) -> None:
        self.model = Model(t3, turbo)
        self.check_steps = CHECK_STEPS if self.model.device.type == "cuda" else 1

    def places(self, rows: int) -> int:
        """How many places a batch of so many rows has."""
        return rows

    def window(self, used: int) -> int:
        """How many slots a step looks at when so many are in use."""
        return round_up(used, WINDOW)

    def slots(self, texts: int, wide: int, slots: int) -> Slots:
        """Cleared ones for so many texts of WIDE rows."""
        return Slots(self.model, texts, wide, self.window(slots))

    def step(self, s: Slots, texts: int, wide: int, window: int) -> None:
        self.model.advance(s, texts, wide, window)
