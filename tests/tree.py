"""tree.py - which files the checks of the tree look at."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("cmd", "config", "jobs", "orchestrator", "providers", "tests")


def listed(*args):
    out = subprocess.run(["git", "ls-files", "-z", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in out.split("\0") if name and os.path.isfile(os.path.join(ROOT, name))}


def files(*patterns):
    """Files that git knows, and new ones in the tree's folders: those are checked before they are committed. At the top, what
    somebody renders there to try burst is no part of the tree."""
    new = {name for name in listed("--others", "--exclude-standard", "--", *patterns) if name.startswith(FOLDERS) and "/" in name}
    return sorted(listed("--", *patterns) | new)
