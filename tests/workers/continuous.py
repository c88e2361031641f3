#!/usr/bin/env python3
"""A worker for tests whose segments join and leave while it works, as with engines that batch continuously. A step takes LONGEST +
EACH x the segments in flight, in seconds, and each segment needs as many steps as it has characters; before its first step it takes
ONCE more. LIMIT is how many it takes at a time.

    CRASH_ON=id   exits when it is given this segment        ONCE_CRASH_ON=id   only the first time (a file in BURST_OUT remembers)
    OOM_OVER=n    out of memory when it holds more than n    HANG_ON=id         says nothing more from then on
    SAYS=line     said after hello; several lines are separated by "|"
    PROTOCOL=n, BATCHING=word   in its hello

On stderr: "begin ID N TIME" for each segment that it is given, N of them in flight by then."""

import json
import os
import select
import sys
import time

sys.dont_write_bytecode = True  # code on a pod does not change

from answers import say, write_wav  # noqa: E402


class Engine:
    def __init__(self):
        self.longest, self.each, self.once = (float(os.environ.get(name, "0")) for name in ("LONGEST", "EACH", "ONCE"))
        self.left = {}  # steps that each segment in flight still needs
        self.files = {}

    def step_s(self):
        return max(self.longest + self.each * len(self.left), 1e-6)

    def begin(self, task):
        self.left[task["id"]] = len(task["text"]) + self.once / self.step_s()
        self.files[task["id"]] = task["file"]
        print("begin", task["id"], len(self.left), time.monotonic(), file=sys.stderr, flush=True)

    def next_s(self):
        return min(self.left.values()) * self.step_s() if self.left else None

    def advance(self, seconds):
        steps = seconds / self.step_s()
        for name in self.left:
            self.left[name] -= steps
        done = [name for name, left in self.left.items() if left <= 1e-9]
        for name in done:
            del self.left[name]
        return done


def fault(task):
    """What is to go wrong with this segment."""
    mark = os.path.join(os.environ["BURST_OUT"], ".crashed")
    if task["id"] == os.environ.get("HANG_ON"):
        time.sleep(1000)
    if task["id"] == os.environ.get("CRASH_ON"):
        sys.exit(3)
    if task["id"] == os.environ.get("ONCE_CRASH_ON") and not os.path.exists(mark):
        open(mark, "w", encoding="utf-8").close()
        sys.exit(3)


def main():
    limit = int(os.environ.get("LIMIT", "8"))
    over = int(os.environ.get("OOM_OVER", "0"))
    engine = Engine()
    say(hello=1, protocol=int(os.environ.get("PROTOCOL", "2")), engine="continuous", version="1", sample_rate=8000, max_batch=limit,
        gpu=False, batching=os.environ.get("BATCHING", "continuous"))
    for line in filter(None, os.environ.get("SAYS", "").split("|")):
        print(line, flush=True)
    unread, at_end, now = b"", False, time.monotonic()
    while not at_end or engine.left:
        wait = engine.next_s()
        ready, _, _ = select.select([] if at_end else [0], [], [], wait)
        before, now = now, time.monotonic()
        for name in engine.advance(now - before):
            write_wav(engine.files[name])
            say(segment=name, ok=True, file=engine.files[name])
            say(take=1)
        if not ready:
            continue
        part = os.read(0, 1 << 16)
        at_end = not part
        *lines, unread = (unread + part).split(b"\n")
        for line in lines:
            for task in json.loads(line)["segments"]:
                fault(task)
                engine.begin(task)
        if len(engine.left) > limit:
            sys.exit(f"{len(engine.left)} segments in flight, {limit} are the most")
        if over and len(engine.left) > over:
            engine.left.clear()
            say(oom=True)


main()
