#!/usr/bin/env python3
"""kubernetes_watch.py BED OUT FILES [MARK] - looks on, until SIGTERM, while a client runs a job on tests/cloud/kubernetes/bed.sh, and prints
"FIRST ALL GONE PEAK IDLE": when the first of FILES *.wav was in OUT, when all were, when the API server listed no pod any more (microseconds
since the epoch, 0: never), and what the client's processes held at most and at first, in kB: the sum of their PSS, every quarter of a second.
The client's processes are those with MARK, as NAME=VALUE, in their environment, and all that descend from them. Without MARK none is
counted: to sum up the memory of SkyPilot's 30 processes takes a large part of a core."""
from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import sys
import time

POLL_S, MEMORY_S = 0.05, 0.25
PORT = int(os.environ.get("PORT", "17443"))


def client_processes(mark: bytes) -> set[str]:
    parents, marked = {}, set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parents[pid] = f.read().rpartition(")")[2].split()[1]
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    marked.add(pid)
        except OSError:
            continue
    while more := {pid for pid, parent in parents.items() if parent in marked} - marked:
        marked |= more
    return marked


def pss_kb(pids: set[str]) -> int:
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            continue
    return total


class ApiServer:
    def __init__(self, bed: str) -> None:
        context = ssl.create_default_context(cafile=f"{bed}/ca.crt")
        context.load_cert_chain(f"{bed}/admin.crt", f"{bed}/admin.key")
        self.connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=context, timeout=10)

    def pods(self) -> int:
        self.connection.request("GET", "/api/v1/namespaces/default/pods")
        return len(json.load(self.connection.getresponse())["items"])


def watch(bed: str, out: str, files: int, mark: bytes = b"") -> None:
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    server = ApiServer(bed)
    first = every = gone = peak = idle = 0
    seen, memory_at = False, 0.0
    while not stop:
        now = time.time_ns() // 1000
        here = sum(name.endswith(".wav") for name in os.listdir(out)) if os.path.isdir(out) else 0
        first = first or (now if here else 0)
        every = every or (now if here >= files else 0)
        pods = server.pods()
        seen = seen or pods > 0
        gone = 0 if pods or not seen else gone or now
        if mark and time.monotonic() >= memory_at:
            held = pss_kb(client_processes(mark))
            peak, idle = max(peak, held), idle or held
            memory_at = time.monotonic() + MEMORY_S
        time.sleep(POLL_S)
    print(first, every, gone, peak, idle)


watch(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(str.encode, sys.argv[4:]))
