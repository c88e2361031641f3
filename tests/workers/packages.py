"""packages.py - the Python environments below build/ that hold what `make chatterbox-packages` and its like install."""
from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def enter(name: str) -> None:
    """Goes on under the Python of build/NAME, from the start of the program, if it is there."""
    folder = os.path.join(ROOT, "build", name)
    python = os.path.join(folder, "bin", "python")
    if os.path.exists(python) and not sys.prefix.startswith(folder):
        os.execv(python, [python, *sys.argv])
