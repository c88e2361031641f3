#!/usr/bin/env python3
"""A worker for tests that takes as long for a batch as a GPU engine would: ONCE + LONGEST x longest + EACH x sum, in seconds and
characters (with EQUAL=1 every segment counts as one), give or take JITTER (0.05: 5 %). MAX_BATCH, BATCHING and PHASES (JSON) go into its
hello, which comes after LOAD seconds; TOOK=FILE gets a line per batch."""

import json
import os
import random
import sys
import time

sys.dont_write_bytecode = True  # code on a pod does not change

from answers import say, write_wav  # noqa: E402


def main():
    once, longest, each = (float(os.environ.get(name, "0")) for name in ("ONCE", "LONGEST", "EACH"))
    equal = os.environ.get("EQUAL")
    jitter = float(os.environ.get("JITTER", "0"))
    time.sleep(float(os.environ.get("LOAD", "0")))
    phases = {"phases": json.loads(os.environ["PHASES"])} if "PHASES" in os.environ else {}
    say(hello=1, protocol=1, engine="padded", version="1", sample_rate=8000, max_batch=int(os.environ.get("MAX_BATCH", "8")), gpu=False,
        batching=os.environ.get("BATCHING", "padded"), **phases)
    for line in sys.stdin:
        batch = json.loads(line)
        began = time.monotonic()
        lengths = [1 if equal else len(s["text"]) for s in batch["segments"]]
        for segment in batch["segments"]:
            write_wav(segment["file"])
        takes = (once + longest * max(lengths) + each * sum(lengths)) * (1 + random.uniform(-jitter, jitter))
        time.sleep(max(0.0, takes - (time.monotonic() - began)))
        for segment in batch["segments"]:
            say(segment=segment["id"], ok=True, file=segment["file"])
        say(batch=batch["batch"], done=True)
        if os.environ.get("TOOK"):
            with open(os.path.join(os.environ["BURST_VOLUME"], os.environ["TOOK"]), "a", encoding="utf-8") as f:
                f.write(f"{len(lengths)}\n")


main()
