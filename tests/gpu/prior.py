#!/usr/bin/env python3
"""prior.py FILE - what jobs/tts/engines.c may say of an engine, from the JSON of experiments.py: the time of a batch,
once_s + longest_s x (characters of its longest line) + each_s x (characters of all), and its memory, base_gib + each_gib x lines.

Every second point is fitted, the others judge: the residual is theirs. Errors count by their share of the time, and nothing is
negative."""
from __future__ import annotations

import itertools
import json
import sys
from typing import Any, Optional, Sequence

Point = tuple[tuple[float, ...], float]  # the terms, and what was measured


def solve(a: list[list[float]], y: list[float]) -> Optional[list[float]]:
    """Gauss with pivots; None: the points do not tell the terms apart."""
    n = len(y)
    rows = [list(row) + [value] for row, value in zip(a, y)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                by = rows[r][i] / rows[i][i]
                rows[r] = [x - by * z for x, z in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def squares(points: Sequence[Point], terms: Sequence[float]) -> float:
    return sum((sum(t * x for t, x in zip(terms, xs)) / y - 1) ** 2 for xs, y in points)


def least_squares(points: Sequence[Point]) -> list[float]:
    """The best of all choices of terms that are not 0, in shares of what was measured."""
    width, best = len(points[0][0]), None
    for size in range(width, 0, -1):
        for kept in itertools.combinations(range(width), size):
            a = [[sum(xs[i] * xs[j] / y ** 2 for xs, y in points) for j in kept] for i in kept]
            scale = [row[i] ** 0.5 or 1.0 for i, row in enumerate(a)]
            found = solve([[x / scale[i] / scale[j] for j, x in enumerate(row)] for i, row in enumerate(a)],
                          [sum(xs[i] / y for xs, y in points) / scale[k] for k, i in enumerate(kept)])
            if found is None or min(found) < 0:
                continue
            terms = [0.0] * width
            for k, i in enumerate(kept):
                terms[i] = found[k] / scale[k]
            if best is None or squares(points, terms) < squares(points, best) - 1e-15:
                best = terms
    if best is None:
        raise ValueError("the points do not tell the terms apart")
    return best


def fit(points: Sequence[Point]) -> tuple[list[float], float]:
    """The terms from every second point; the mean residual of the others, as a share."""
    if len(points) < 2 * len(points[0][0]) if points else True:
        raise ValueError(f"{len(points)} points are too few")
    terms, judges = least_squares(points[::2]), points[1::2]
    return terms, sum(abs(sum(t * x for t, x in zip(terms, xs)) / y - 1) for xs, y in judges) / len(judges)


def times(report: dict[str, Any], kind: str) -> list[Point]:
    points = report["experiments"]["E9"]["result"][kind]["points"]
    return [((1.0, p["longest"], p["sum"]), p["seconds"]) for p in points if p.get("seconds")]


def memory(report: dict[str, Any], kind: str) -> list[Point]:
    points = report["experiments"]["E5"]["result"][kind]["points"]
    return [((1.0, p["b"]), p["peak_gib"] + p.get("held_gib", 0.0)) for p in points if p.get("peak_gib")]


def prior(report: dict[str, Any], kind: str) -> dict[str, Any]:
    """What cannot be told has its reason in place of its figures."""
    found: dict[str, Any] = {}
    for name, read, keys in (("time", times, ("once_s", "longest_s", "each_s")), ("memory", memory, ("base_gib", "each_gib"))):
        try:
            terms, residual = fit(read(report, kind))
            found.update(zip(keys, terms))
            found[f"{name}_residual"] = residual
        except (KeyError, ValueError) as error:
            found[f"{name}_missing"] = f"not in the file: {error}" if isinstance(error, KeyError) else str(error)
    return found


def text(report: dict[str, Any], kind: str) -> str:
    found, facts = prior(report, kind), report["facts"].get("result", {})
    lines = [f"chatterbox{'-turbo' if kind == 'turbo' else ''} on {facts.get('card')}, driver {facts.get('driver')}, torch {facts.get('torch')}: "
             f"{report['note']}{'; A DRY RUN, its figures mean nothing' if report['small'] else ''}"]
    for name, keys in (("time", ("once_s", "longest_s", "each_s")), ("memory", ("base_gib", "each_gib"))):
        if f"{name}_missing" in found:
            lines.append(f"  {name}: none ({found[f'{name}_missing']})")
        else:
            said = ", ".join(f".{key} = {found[key]:.4g}" for key in keys)
            lines.append(f"  {said}  (other half of the points: off by {100 * found[f'{name}_residual']:.1f} % on average)")
    return "\n".join(lines)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: prior.py FILE", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    for kind in ("regular", "turbo"):
        print(text(report, kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
