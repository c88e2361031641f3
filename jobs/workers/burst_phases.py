"""Times each step of a worker's start. The hello line reports the times, the ledger keeps them, and a plan uses them."""
from __future__ import annotations

import contextlib
import time
from typing import Iterator

NAMES = ("import", "read", "build", "warm_up", "probe")  # in jobs/PROTOCOL.md with "_s" appended


class Phases:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inner = [0.0]  # for each open phase: the time of phases inside it

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Adds the body's time to this phase, without the time of phases inside it."""
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
