#!/usr/bin/env python3
"""locks.py UV [NAME...] - writes jobs/workers/lock/NAME.txt from NAME.in: each package that an engine needs on a pod, with its version
and the SHA-256 of the files that a pod may install. For `make locks`; needs PyPI.

Pods are x86-64 Linux with glibc 2.31 or later and CPython 3.10 to 3.13. torch is the image's: neither it nor what only it needs is
listed. In NAME.in a line is a requirement; after "#", "alone" leaves its dependencies out, "pinned" makes the worker check the
version and every segment's key contain it, and "each" allows several versions of one package, of which the set-up chooses. Packages
that come as source alone are in NAME-source.in: otherwise a pod would fetch what builds them, in any version.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from typing import Any, Iterator, Optional

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs", "workers", "lock")
PYTHONS = (10, 11, 12, 13)
GLIBC = 31
NOT_OURS = ("torch", "torchaudio", "torchvision", "triton")
# In the markers of a universal resolution; the versions of Python follow.
PLATFORM = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64",
            "implementation_name": "cpython", "platform_python_implementation": "CPython"}


def read_wanted(name: str) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Requirements with their dependencies, those without, in groups that are resolved together, and the names of pinned packages."""
    deep, alone, pinned, each = [], [], [], []
    with open(f"{FOLDER}/{name}.in", encoding="utf-8") as f:
        for line in f:
            requirement, _, words = (part.strip() for part in line.partition("#"))
            if not requirement:
                continue
            words = re.split(r"[,\s]+", words)
            if "each" in words:
                each.append([requirement])
            else:
                (alone if "alone" in words else deep).append(requirement)
            if "pinned" in words:
                pinned.append(re.split(r"[<>=!~ ]", requirement)[0])
    return [deep], [alone] + each, pinned


def resolve(uv: str, requirements: list[str], *options: str) -> list[dict[str, Any]]:
    if not requirements:
        return []
    with tempfile.TemporaryDirectory() as folder:
        wanted = [re.split(r"[<>=!~ ]", r)[0] for r in requirements]
        for name, lines in (("in", requirements), ("not-ours", [f"{p}; sys_platform == 'never'" for p in NOT_OURS if p not in wanted])):
            with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
        subprocess.run([uv, "pip", "compile", "-q", f"{folder}/in.txt", "--universal", "--python-version", f"3.{PYTHONS[0]}",
                        "--fork-strategy", "fewest", "--override", f"{folder}/not-ours.txt", "--no-config", "--format", "pylock.toml",
                        "-o", f"{folder}/pylock.toml", *options], check=True)
        with open(f"{folder}/pylock.toml", "rb") as f:
            return tomllib.load(f)["packages"]


def holds(marker: str, python: int) -> bool:
    """A marker of uv's output: names, versions, and / or / parentheses."""
    known = dict(PLATFORM, python_version=(3, python), python_full_version=(3, python, 99))
    text = marker
    for name, value in known.items():
        text = re.sub(rf"\b{name}\b", repr(value), text)
    text = re.sub(r"'(\d+(?:\.\d+)+)'", lambda m: repr(tuple(int(p) for p in m[1].split("."))), text)
    return bool(eval(text, {"__builtins__": {}}))  # of a file that uv wrote just now


def glibc_of(platform: str) -> Optional[int]:
    """The glibc 2.N that a wheel of this platform needs; None: it is for other machines."""
    if platform == "any":
        return 0
    old = {"manylinux1_x86_64": 5, "manylinux2010_x86_64": 12, "manylinux2014_x86_64": 17, "linux_x86_64": 17}
    if platform in old:
        return old[platform]
    new = re.fullmatch(r"manylinux_2_(\d+)_x86_64", platform)
    return int(new[1]) if new else None


def fits(file: str, python: int) -> Optional[int]:
    """As glibc_of(), of a wheel for CPython 3.python."""
    tags, abis, platforms = (part.split(".") for part in file[:-len(".whl")].split("-")[-3:])
    exact = f"cp3{python}" in tags and (f"cp3{python}" in abis or "none" in abis)
    stable = "abi3" in abis and any(t.startswith("cp3") and int(t[3:] or 0) <= python for t in tags)
    pure = "none" in abis and any(t in ("py3", "py2.py3", f"py3{python}") for t in tags)
    if not (exact or stable or pure):
        return None
    needs = [n for n in map(glibc_of, platforms) if n is not None]
    return min(needs) if needs and min(needs) <= GLIBC else None


def name_of(file: dict[str, Any]) -> str:
    return file.get("name") or file["url"].rsplit("/", 1)[1]


def check_built(package: dict[str, Any], name: str) -> None:
    if not package.get("wheels") and not name.endswith("-source"):
        sys.exit(f"{name}.in: {package['name']} comes as source alone: move it to {name}-source.in")


def usable(package: dict[str, Any], pythons: list[int]) -> Iterator[dict[str, Any]]:
    """Of the files of a package, one for each Python: compiled before not, then what runs on the oldest system."""
    for python in pythons:
        wheels = [(need, name_of(w), w) for w in package.get("wheels", []) if (need := fits(name_of(w), python)) is not None]
        if wheels:
            yield min(wheels, key=lambda w: (w[0] == 0, w[0], w[1]))[2]
        elif "sdist" in package:
            yield package["sdist"]
        else:
            sys.exit(f"{package['name']} {package['version']} has no file for Python 3.{python}")


def line_of(package: dict[str, Any]) -> tuple[str, int]:
    """Its line and the bytes of a download; "" where no pod needs it."""
    pythons = [p for p in PYTHONS if holds(package.get("marker", "True"), p)]
    if not pythons:
        return "", 0
    files = {f["hashes"]["sha256"]: f for f in usable(package, pythons)}
    marker = ""
    if len(pythons) < len(PYTHONS):
        first, last = pythons[0], pythons[-1]
        marker = f" ; python_version >= '3.{first}'" if last == PYTHONS[-1] else f" ; python_version < '3.{last + 1}'"
    line = f"{package['name']}=={package['version']}{marker}" + "".join(f" --hash=sha256:{h}" for h in sorted(files))
    return line, max(f.get("size", 0) for f in files.values())


def lock(uv: str, name: str) -> None:
    deep, alone, pinned = read_wanted(name)
    found = [p for group in deep for p in resolve(uv, group)] + [p for group in alone for p in resolve(uv, group, "--no-deps")]
    lines, size = {}, 0
    for package in found:
        line, largest = line_of(package)
        if line and line not in lines:
            check_built(package, name)
            lines[line] = None
            size += largest
    with open(f"{FOLDER}/{name}.txt", "w", encoding="utf-8") as f:
        f.write(f"# Made by `make locks` from {name}.in. Not torch and what comes with it: the image's are used.\n")
        f.writelines(f"# pinned {p}\n" for p in pinned)
        f.write(f"# bytes {size}\n")
        f.writelines(f"{line}\n" for line in sorted(lines))
    print(f"{name}: {len(lines)} packages, some {size / 1e6:.0f} MB")


def main() -> None:
    for name in sys.argv[2:] or sorted(f[:-3] for f in os.listdir(FOLDER) if f.endswith(".in")):
        lock(sys.argv[1], name)


if __name__ == "__main__":
    main()
