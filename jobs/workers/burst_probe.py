"""How many segments fit on the card at once: measured with rehearsals of 1 and 4, and kept for the other workers and the next
start in this container."""
from __future__ import annotations

import json
import os
from typing import Optional

from burst_device import kind_of
from burst_engine import Engine
from burst_wire import log

SHARE = 0.92  # of the memory: the rest is for fragments and for what others take
SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


def fit(free_gib: float, base_gib: float, slope_gib: float, most: int) -> int:
    """The largest usual size whose base + slope x b stays within SHARE; 0: not even one fits."""
    room = SHARE * free_gib - base_gib
    b = most if slope_gib <= 0 and room >= 0 else int(room / slope_gib) if slope_gib > 0 else 0
    return max((s for s in SIZES if s <= min(b, most)), default=0)


def smaller(b: int) -> int:
    """Three quarters, as one of the usual sizes."""
    return max((s for s in SIZES if s <= b * 3 // 4), default=1)


def attempt(engine: Engine, device: object, b: int) -> Optional[float]:
    """The peak of a rehearsal in GiB; None: out of memory."""
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


def cache_path() -> str:
    home = os.environ.get("HOME", "/tmp")
    return os.path.join(home, ".burst-probe.json")


def read_cache() -> dict[str, int]:
    try:
        with open(cache_path(), encoding="utf-8") as f:
            known = json.load(f)
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}


def most_at_once(engine: Engine, device: object, versions: str) -> int:
    """0: not even one segment fits. Without a card to probe: what the engine says."""
    if not device.total_gib():
        return engine.max_batch
    workers = max(1, int(os.environ.get("BURST_WORKERS", "1") or 1))
    key = f"{engine.name} {versions} {device.facts()} workers {workers}{' graphs' if engine.held_gib() else ''}"
    known = read_cache()
    if isinstance(known.get(key), int) and known[key] > 0:
        return min(known[key], engine.max_batch)
    b = measure(engine, device, workers)
    device.release()
    known[key] = b
    try:
        beside = f"{cache_path()}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as f:
            json.dump(known, f)
        os.replace(beside, cache_path())
    except OSError:
        pass  # the next start measures again
    return b
