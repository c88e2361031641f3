#!/usr/bin/python3
"""fast.py - a worker that takes next to no time, for measuring everything else: it hums as long as the text would take. HUM_MS: it
rests so long before each segment."""

import array
import json
import os
import struct
import sys
import time

REST_S = float(os.environ.get("HUM_MS", "0")) / 1000
RATE = 8000
sounds = {}


def sound(text):
    tenths = max(3, int(len(text) * 0.7))
    if tenths not in sounds:
        samples = array.array("h", ((i * 7919 % 2003) * 8 - 8000 for i in range(tenths * RATE // 10))).tobytes()
        sounds[tenths] = (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " +
                          struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE * 2, 2, 16) + b"data" + struct.pack("<I", len(samples)) + samples)
    return tenths, sounds[tenths]


def say(**line):
    print(json.dumps(line), flush=True)


out = os.environ["BURST_OUT"]
say(hello=1, protocol=1, engine="fast", version="1", sample_rate=RATE, max_batch=64)
for line in sys.stdin:
    batch = json.loads(line)
    for s in batch["segments"]:
        time.sleep(REST_S)
        tenths, wav = sound(s["text"])
        path = os.path.join(out, s["file"])
        with open(path + ".tmp", "wb") as f:
            f.write(wav)
        os.rename(path + ".tmp", path)
        say(segment=s["id"], ok=True, file=s["file"], seconds=tenths / 10)
    say(batch=batch["batch"], done=True)
