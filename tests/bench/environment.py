#!/usr/bin/env python3
"""environment.py - from the order to start to a worker that has imported its packages: the environment used as a folder of the
volume, against its archive unpacked to the local disk, by the real agent. Then the same on a volume where each file that is opened
or looked at costs 1 ms more. The environment is Kokoro's packages (`make kokoro-packages`). Where it may, it drops the page cache
before each."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from typing import Any, Iterator

import cold
from cold import ROOT, TIMES

PACKAGES = os.path.join(ROOT, "build", "kokoro")
AGENT = os.path.join(ROOT, "build", "burst-agent")
SLOW = os.path.join(ROOT, "build", "bench", "slow_volume.so")
SLOW_US = 1000
IMPORTS = "numpy, jieba, misaki.zh, regex, loguru, huggingface_hub, phonemizer, espeakng_loader"
HELLO = '{"hello":1,"protocol":1,"engine":"bench","version":"1"}'


class Pod:
    """A fresh agent over a volume; its environments go to a disk of its own."""

    def __init__(self, top: str, number: int, slow: list[str]) -> None:
        self.home, self.volume, self.disk = f"{top}/home{number}", f"{top}/volume", f"{top}/disk{number}"
        os.makedirs(self.home)
        os.makedirs(self.volume, exist_ok=True)
        os.chmod(self.home, 0o755)
        now = int(time.time())
        self.env = {"BURST_RUN": "r1", "BURST_ATTEMPT": f"aaaabbbbcccc{number:04d}", "BURST_VOLUME": self.volume, "BURST_HOME": self.home,
                    "BURST_HARD_END": str(now + 3600), "BURST_FIRST_LEASE_END": str(now + 1800), "BURST_ENV_DISK": self.disk,
                    "PATH": os.environ["PATH"]}
        if slow:
            self.env |= {"LD_PRELOAD": SLOW, "SLOW_US": str(SLOW_US), "SLOW_DIRS": ":".join(folder.format(disk=self.disk) for folder in slow)}
        with open(f"{self.home}/env", "w", encoding="utf-8") as f:
            f.writelines(f"{name}='{value}'\n" for name, value in self.env.items())
        self.agent = subprocess.Popen([AGENT, "attach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **self.env})
        self.tell(op="attach", **{"from": 0})

    def tell(self, **order: Any) -> None:
        self.agent.stdin.write(json.dumps(order) + "\n")
        self.agent.stdin.flush()

    def events(self) -> Iterator[dict[str, Any]]:
        for line in self.agent.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        raise RuntimeError("the agent ended")

    def wait(self, name: str) -> dict[str, Any]:
        for event in self.events():
            if event["ev"] == "fatal" or event["ev"] == "worker" and event["state"] != "ready" or event["ev"] == "start" and not event["ok"]:
                raise RuntimeError(f"{event}")
            if event["ev"] == name:
                return event
        raise RuntimeError(name)

    def end(self) -> None:
        self.tell(op="end", reason="measured")
        self.agent.stdin.close()
        self.agent.wait(60)
        shutil.rmtree(self.disk, ignore_errors=True)


def pack(top: str, script: str) -> str:
    """Has the agent make the environment that the script writes to $BURST_ENV, and its archive. Returns the tree's hash."""
    pod = Pod(top, 0, [])
    pod.tell(op="setup", hash="e", timeout_s=3600, root=True, script=script)
    answer = pod.wait("setup")
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    pod.end()
    return answer["tree"]


def start(top: str, number: int, tree: str, slow: list[str], imports: str = IMPORTS) -> tuple[float, float]:
    """Seconds until a worker has imported these, and of these until the agent had the environment."""
    cold.drop_cache()
    pod = Pod(top, number, slow)
    pod.wait("hello")
    began = time.monotonic()
    worker = f"echo begun; PYTHONPATH=$BURST_ENV/packages python3 -c 'import {imports}' && echo '{HELLO}'; sleep 1000"
    pod.tell(op="start", workers=1, worker=worker, env_hash="e", env_tree=tree, root=True)
    ready = 0.0
    for event in pod.events():
        if event["ev"] == "log" and event.get("line") == "begun":
            ready = time.monotonic() - began
        if event["ev"] == "start" or event["ev"] == "fatal" or event["ev"] == "worker" and event["state"] != "ready":
            raise RuntimeError(f"{event}")
        if event["ev"] == "worker":
            break
    took = time.monotonic() - began
    pod.end()
    return took, ready


def show(name: str, runs: list[tuple[float, float]]) -> float:
    took, ready = min(runs)
    print(f"{name}: {took:.1f} s (the agent {ready:.1f}, importing {took - ready:.1f}); {cold.each([t for t, _ in runs])}", flush=True)
    return took


def main() -> None:
    if not os.path.exists(f"{PACKAGES}/.complete"):
        print("environment: skipped: make kokoro-packages")
        return
    with cold.folder("environment") as top:
        tree = pack(top, f'cp -rL "{PACKAGES}" "$BURST_ENV/packages"')
        archive = f"{top}/volume/env/e/.burst-archive"
        files = sum(len(names) for _, _, names in os.walk(f"{top}/volume/env/e"))
        print(f"# an environment of {files} files, {os.path.getsize(archive) / 1e6:.0f} MB, by the real agent, {cold.said(cold.drop_cache())}")
        number = 0
        for slow, words in ((False, "the volume as fast as the disk"), (True, f"{SLOW_US / 1000:.0f} ms for each access to the volume")):
            took: dict[str, list[tuple[float, float]]] = {"folder": [], "archive": []}
            for _ in range(TIMES if not slow else 1):
                for way, runs in took.items():
                    number += 1
                    if way == "folder":
                        os.rename(archive, f"{top}/archive")
                    below = [f"{top}/volume"] + (["{disk}"] if way == "folder" else [])  # where a link leads to the volume
                    runs.append(start(top, number, tree, below if slow else []))
                    if way == "folder":
                        os.rename(f"{top}/archive", archive)
            print(words)
            folder = show("  a folder of the volume, compared where it lies", took["folder"])
            unpacked = show("  its archive, unpacked to the local disk", took["archive"])
            print(f"  folder / archive: {folder / unpacked:.2f}x")


if __name__ == "__main__":
    main()
