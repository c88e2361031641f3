"""cold.py - what the benches of a cold start share: a folder on the disk, an empty page cache, the best of several times."""
from __future__ import annotations

import os
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIMES = int(os.environ.get("TIMES", "3"))


def folder(name: str) -> tempfile.TemporaryDirectory[str]:
    """A folder on a real disk, that agents which drop root can enter."""
    made = tempfile.TemporaryDirectory(prefix=f"burst-{name}-", dir=os.environ.get("BURST_BENCH_DIR", "/var/tmp"))
    os.chmod(made.name, 0o755)
    return made


def drop_cache() -> bool:
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3")
        return True
    except OSError:
        return False


def said(dropped: bool) -> str:
    return f"page cache {'dropped' if dropped else 'warm'}, the best of {TIMES}"


def each(times: list[float]) -> str:
    return "each time: " + ", ".join(f"{t:.1f}" for t in times)
