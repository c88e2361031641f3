#!/usr/bin/python3
"""watch.py - runs a client and measures it: watch.py API-URL PODS RESULT.json COMMAND... (API-URL "-": there is no stand-in)
What it has when all pods are connected is read once: memory, descriptors, and the CPU time it takes while they idle or work."""

import json
import os
import resource
import subprocess
import sys
import time
import urllib.request

url, pods, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
began = time.monotonic()
child = subprocess.Popen(sys.argv[4:])
seen = {"connected_kb": 0, "connected_fds": 0, "connected_after_s": 0, "most_connected": 0, "most_fds": 0, "start_kb": 0}


def memory_kb():
    with open(f"/proc/{child.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def look():
    fds = len(os.listdir(f"/proc/{child.pid}/fd"))
    seen["most_fds"] = max(seen["most_fds"], fds)
    if url == "-":
        return
    with urllib.request.urlopen(url + "/_control/light", timeout=60) as reply:
        connected = json.load(reply)["connected"]
    if connected == 1 and not seen["start_kb"]:
        seen["start_kb"] = memory_kb()
    seen["most_connected"] = max(seen["most_connected"], connected)
    if connected >= pods and not seen["connected_kb"]:
        seen.update(connected_kb=memory_kb(), connected_fds=fds, connected_after_s=round(time.monotonic() - began, 1))


while child.poll() is None:
    try:
        look()
    except (OSError, StopIteration, KeyError):
        pass
    try:
        child.wait(0.2 if pods < 100 else 1)
    except subprocess.TimeoutExpired:
        pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
status = child.returncode if child.returncode >= 0 else 128 - child.returncode
json.dump({"pods": pods, "status": status, "wall_s": round(time.monotonic() - began, 1), "cpu_user_s": round(used.ru_utime, 2),
           "cpu_system_s": round(used.ru_stime, 2), "most_kb": used.ru_maxrss, **seen}, open(result, "w"))
