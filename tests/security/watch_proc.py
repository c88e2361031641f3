"""watch_proc.py - every process of this machine, again and again, until told to stop: python3 watch_proc.py FOLDER.
Each new command line goes to FOLDER/cmdlines, each new environment as one JSON line to FOLDER/environs:
{"pid", "parents": [..], "cmdline", "env": [..]}. FOLDER/stop ends it; FOLDER/rounds says how often it looked."""
import json
import os
import sys
import time

folder = sys.argv[1]
seen = {}


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def parents(pid):
    chain = []
    while pid > 1 and len(chain) < 64:
        stat = read("/proc/%d/stat" % pid)
        if not stat:
            break
        pid = int(stat.rsplit(b") ", 1)[1].split()[1])
        chain.append(pid)
    return chain


def look(pid, cmdlines, environs):
    cmdline, env = read("/proc/%d/cmdline" % pid), read("/proc/%d/environ" % pid)
    if not cmdline or seen.get(pid) == (cmdline, env):
        return
    seen[pid] = (cmdline, env)
    cmdlines.write(cmdline.replace(b"\0", b"\n") + b"\n")
    words = cmdline.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    if len(words) > 600:  # a script as an argument: what it begins and what it ends with tell whose it is
        words = words[:300] + " ... " + words[-300:]
    variables = [v.decode("utf-8", "replace") for v in env.split(b"\0") if v]
    environs.write(json.dumps({"pid": pid, "parents": parents(pid), "cmdline": words, "env": variables}) + "\n")


rounds = 0
with open(folder + "/cmdlines", "wb") as cmdlines, open(folder + "/environs", "w") as environs:
    while not os.path.exists(folder + "/stop"):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                look(int(name), cmdlines, environs)
        rounds += 1
        time.sleep(0.005)
with open(folder + "/rounds", "w") as f:
    f.write(str(rounds))
