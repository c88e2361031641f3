"""Sends the protocol's lines (jobs/PROTOCOL.md) on a descriptor of their own, so that what libraries print on stdout becomes log."""
from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any, Iterator

PROTOCOL = 1
HEARTBEAT_S = 10.0


class Wire:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def say(self, **message: Any) -> None:
        line = json.dumps(message, ensure_ascii=False, allow_nan=False) + "\n"
        with self.lock:
            self.out.write(line)
            self.out.flush()

    def hello(self, engine: str, **facts: Any) -> None:
        self.say(hello=1, protocol=PROTOCOL, engine=engine, **facts)

    def batches(self) -> Iterator[dict[str, Any]]:
        for line in sys.stdin:
            message = json.loads(line) if line.strip() else {}
            if "segments" in message:
                yield message


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def log_timing(**facts: Any) -> None:
    log(json.dumps({"timing": facts}))


@contextlib.contextmanager
def heartbeat(doing: str, every_s: float = HEARTBEAT_S) -> Iterator[None]:
    """Prints a line now and then while the body runs: the agent kills a silent worker."""
    over = threading.Event()
    began = time.monotonic()

    def beat() -> None:
        while not over.wait(every_s):
            log(f"{doing}: {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Progress:
    """For long stages: prints at most every few seconds, and only if the engine progresses."""

    def __init__(self, every_s: float = HEARTBEAT_S) -> None:
        self.every_s = every_s
        self.last = time.monotonic()

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.last >= self.every_s:
            self.last = now
            log(text)
