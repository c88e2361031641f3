"""How long each step of a worker's start takes: its hello line tells the agent, the ledger learns from it, a plan shows it."""
from __future__ import annotations

import contextlib
import time
from typing import Iterator

NAMES = ("import", "read", "build", "warm_up", "probe")  # jobs/PROTOCOL.md names them with "_s" behind


class Phases:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inner = [0.0]  # of each phase under way: the time of those inside it

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Counts the body's time for this phase. A phase inside it counts for itself alone."""
        assert name in NAMES, name
        began = time.monotonic()
        self.inner.append(0.0)
        try:
            yield
        finally:
            took = time.monotonic() - began
            own = took - self.inner.pop()
            self.inner[-1] += took
            self.seconds[name] = self.seconds.get(name, 0.0) + own

    def facts(self) -> dict[str, float]:
        return {f"{name}_s": round(self.seconds[name], 3) for name in NAMES if name in self.seconds}
