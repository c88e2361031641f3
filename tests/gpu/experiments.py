#!/usr/bin/env python3
"""experiments.py - times and memory of Chatterbox's shapes on the card here, as JSON. The published classes have random weights:
what the JSON says holds for their shapes. It says nothing of a voice's quality, or of when a text ends.

Each experiment runs in a process of its own, so that an error of one, also of the card's context, keeps none of the others from
their results. The file of --out gets each result as soon as there is one, since a card may be rented for minutes. `--device cpu
--small` runs all of the code on a processor in tiny sizes; its figures mean nothing."""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from typing import Any, Callable

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "workers")]
sys.dont_write_bytecode = True
import packages  # noqa: E402


def apart(work: Callable[[], Any], limit_s: int) -> dict[str, Any]:
    """{"result": ...} or {"error": ...} of WORK in a child process."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if child == 0:
            signal.alarm(limit_s)
            try:
                told = {"result": work()}
            except BaseException as error:
                traceback.print_exc()
                told = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
            json.dump(told, answer)
            answer.flush()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        answer.seek(0)
        text = answer.read()
    if text:
        return json.loads(text)
    if os.WIFSIGNALED(status):
        by = os.WTERMSIG(status)
        return {"error": f"did not end within {limit_s} s" if by == signal.SIGALRM else f"ended by {signal.Signals(by).name}"}
    return {"error": f"ended with status {os.waitstatus_to_exitcode(status)} and said nothing"}


def measured(device: str, small: bool, name: str) -> Any:
    """What the experiment NAME finds, or the facts of the machine. The imports are here, in a child process: the published packages
    open the card when they are imported, and a process that has opened it cannot fork another one that uses it."""
    import measures
    import twin

    setting = twin.Setting(device, small)
    setting.open()
    return twin.facts(setting) if name == "facts" else measures.ALL[name](setting)


def subjects() -> dict[str, Any]:
    """Why nothing can be measured here ("": it can), and what each experiment is about."""
    try:
        import measures
        import twin
    except ImportError as error:
        return {"missing": str(error)}
    return {"missing": twin.published.MISSING, "about": {name: f.__doc__ for name, f in measures.ALL.items()}}


def keep(report: dict[str, Any], path: str) -> None:
    """Writes the report, whole or not at all."""
    with open(path + ".part", "w", encoding="utf-8") as f:
        f.write(json.dumps(report, indent=1) + "\n")
    os.replace(path + ".part", path)


def run(device: str, small: bool, about: dict[str, str], names: list[str], limit_s: int, path: str) -> dict[str, Any]:
    report: dict[str, Any] = {"note": "random weights, shape twin", "small": small, "device": device,
                              "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                              "facts": apart(lambda: measured(device, small, "facts"), limit_s), "experiments": {}}
    for name in names:
        began = time.monotonic()
        entry = {"about": about[name], **apart(lambda: measured(device, small, name), limit_s)}
        entry["took_s"] = round(time.monotonic() - began, 1)
        print(f"{name}: {'FAILED: ' + entry['error'] if 'error' in entry else 'measured'}, {entry['took_s']} s", file=sys.stderr, flush=True)
        report["experiments"][name] = entry
        if path != "-":
            keep(report, path)
    return report


def main() -> int:
    every = [f"E{i}" for i in range(1, 10)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny sizes: a dry run")
    parser.add_argument("--only", default=",".join(every), help="some of them, as in E1,E5")
    parser.add_argument("--limit", type=int, default=600, help="seconds of each (default 600)")
    parser.add_argument("--out", default="-", help="the JSON file (default: standard output)")
    args = parser.parse_args()
    names = args.only.upper().split(",")
    unknown = [name for name in names if name not in every]
    if unknown:
        parser.error(f"--only: there is no experiment {unknown[0]}")
    packages.enter("chatterbox")
    found = apart(subjects, args.limit)
    can = found.get("result", {"missing": found.get("error")})
    if can["missing"]:
        print(f"experiments: {can['missing']}", file=sys.stderr)
        return 2
    text = json.dumps(run(args.device, args.small, can["about"], names, args.limit, args.out), indent=1) + "\n"
    if args.out == "-":
        sys.stdout.write(text)
    return 1 if '"error"' in text else 0


if __name__ == "__main__":
    sys.exit(main())
