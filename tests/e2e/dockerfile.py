#!/usr/bin/env python3
"""dockerfile.py read|run FILE ... - a Dockerfile of `burst image` as BuildKit's own parser reads it (package `dockerfile` of PyPI, in
build/dockerfile: make dockerfile-parser).

read FILE                    prints a JSON object: from, scripts (name: SHA-256 of the here-document), labels, secrets, commands
run FILE ROOT [NAME=VALUE]   carries its steps out in the folder ROOT, by chroot, in namespaces of their own; the values are the secrets of
                             the build. Needs root. Exits 1 at the first step that fails, with its last lines.
"""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "dockerfile"))
import dockerfile  # noqa: E402


def label_pairs(words: tuple[str, ...]) -> dict[str, str]:
    return {name: value.strip('"') for name, value in zip(words[::2], words[1::2])}


def secrets_of(step: Any) -> list[dict[str, str]]:
    found = []
    for flag in step.flags:
        if not flag.startswith("--mount="):
            sys.exit(f"a flag that this does not know: {flag}")
        words = dict(word.split("=", 1) for word in flag[len("--mount="):].split(","))
        if words.pop("type") != "secret":
            sys.exit(f"a mount that this does not know: {flag}")
        found.append(words)
    return found


def read(path: str) -> None:
    told: dict[str, Any] = {"scripts": {}, "labels": {}, "secrets": [], "commands": []}
    for step in dockerfile.parse_file(path):
        told["commands"].append(step.cmd)
        if step.cmd == "FROM":
            told["from"] = step.value[0]
        elif step.cmd == "COPY":
            told["scripts"][step.value[-1]] = hashlib.sha256(step.heredocs[0].content.encode()).hexdigest()
        elif step.cmd == "LABEL":
            told["labels"].update(label_pairs(step.value))
        elif step.cmd == "RUN":
            told["secrets"] += [s["id"] for s in secrets_of(step) if s["id"] not in told["secrets"]]
    print(json.dumps(told))


def run_step(step: Any, root: str, secrets: dict[str, str]) -> None:
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    env.update({s["env"]: secrets[s["id"]] for s in secrets_of(step) if s["id"] in secrets})
    inside = 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" /bin/sh -c "$1"'
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, root, step.value[0]], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    if done.returncode:
        sys.exit(f"a step ends with {done.returncode}: {step.value[0][:80]}")


def run(path: str, root: str, secrets: dict[str, str]) -> None:
    for step in dockerfile.parse_file(path):
        if step.cmd == "COPY":
            to = root + step.value[-1]
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "w", encoding="utf-8") as f:
                f.write(step.heredocs[0].content)
        elif step.cmd == "RUN":
            run_step(step, root, secrets)
        elif step.cmd not in ("FROM", "USER", "LABEL"):
            sys.exit(f"a step that this does not know: {step.cmd}")


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(sys.argv[2])
    else:
        run(sys.argv[2], os.path.abspath(sys.argv[3]), dict(pair.split("=", 1) for pair in sys.argv[4:]))
