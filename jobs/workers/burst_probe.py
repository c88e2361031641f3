"""Measures how many segments fit on the card at once, with rehearsals of 1 and 4. Hello reports the result and the agent keeps it on
the volume, so that the next worker with such a card and the same versions does not measure."""
from __future__ import annotations

import json
import os
from typing import Any, Optional

from burst_device import kind_of
from burst_engine import Engine
from burst_wire import log

SHARE = 0.92  # of the memory; the rest is for fragmentation and other processes
SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


def fit(free_gib: float, base_gib: float, slope_gib: float, most: int) -> int:
    """The largest usual size whose base + slope x b stays within SHARE; 0 if one segment does not fit."""
    room = SHARE * free_gib - base_gib
    b = most if slope_gib <= 0 and room >= 0 else int(room / slope_gib) if slope_gib > 0 else 0
    return max((s for s in SIZES if s <= min(b, most)), default=0)


def smaller(b: int) -> int:
    """Three quarters of b, rounded to a usual size."""
    return max((s for s in SIZES if s <= b * 3 // 4), default=1)


def attempt(engine: Engine, device: object, b: int) -> Optional[float]:
    """The peak of a rehearsal in GiB, or None if it runs out of memory."""
    device.reset_peak()
    try:
        engine.rehearse(b)
        return device.peak_gib() + engine.held_gib()
    except Exception as error:
        if kind_of(error) != "memory":
            raise
    engine.release()
    device.release()
    return None


def measure(engine: Engine, device: object, workers: int) -> int:
    card = device.total_gib() / workers
    one, four = attempt(engine, device, 1), attempt(engine, device, 4)
    if one is None:
        return 0
    if four is None:
        return 1
    slope = (four - one) / 3
    b = fit(card, one - slope, slope, engine.max_batch)
    log(f"memory: {one - slope:.2f} GiB + {slope:.3f} GiB a segment of {card:.1f} GiB: batches of {b}")
    while b > 4 and attempt(engine, device, b) is None:
        b = smaller(b)
    return max(b, 1)


def known(key: str) -> int:
    """The last measurement of this key by a worker on any pod of this volume, from $BURST_PROBE; 0 if there is none."""
    most = 0
    try:
        with open(os.environ.get("BURST_PROBE", ""), encoding="utf-8") as f:
            for line in f:
                most = read_line(line, key) or most
    except (OSError, ValueError):
        pass  # the file is missing or not text: measure again
    return most


def read_line(line: str, key: str) -> int:
    try:
        found = json.loads(line)
    except ValueError:
        return 0
    most = found.get("max_batch") if isinstance(found, dict) and found.get("key") == key else 0
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else 0


def most_at_once(engine: Engine, device: object, versions: str) -> tuple[int, Optional[dict[str, Any]]]:
    """Returns how many segments fit (0: not one), and the value of "probe" in hello if that was measured now. Without a card to probe,
    the engine's own limit counts."""
    if not device.total_gib():
        return engine.max_batch, None
    workers = max(1, int(os.environ.get("BURST_WORKERS", "1") or 1))
    key = f"{engine.name} {versions} {device.facts()} workers {workers}{' graphs' if engine.held_gib() else ''}"
    most = known(key)
    if most:
        log(f"memory: batches of {most} fit, as measured before on a card like this")
        return min(most, engine.max_batch), None
    most = measure(engine, device, workers)
    device.release()
    return most, {"key": key, "max_batch": most} if most else None
