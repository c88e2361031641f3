#!/usr/bin/env python3
"""listen.py FOLDER - is what lies in FOLDER (manifest.jsonl and its WAV files) speech? Prints a line per file that is not, and a
summary; exits with 1 when one is not.

No speech recognition: the length must fit the text, the loudness be that of speech, silence be neither most of it nor long
inside, and 25 to 95 % of the sounding frames be voiced (periodic with a pitch of 60 to 400 Hz), as vowels are. Noise is not
voiced; a tone is voiced all through; silence has no frames."""
from __future__ import annotations

import array
import json
import math
import os
import sys
import wave
from dataclasses import dataclass

FRAME_S = 0.04
QUIET_DB = -45.0
CHARS_PER_S = (7.0, 26.0)
LOUDNESS_DB = (-36.0, -9.0)
VOICED = (0.25, 0.95)
SILENT_MOST = 0.5
PAUSE_MOST_S = 1.5


@dataclass
class Heard:
    seconds: float
    loudness_db: float  # of the frames that sound
    silent: float       # share of all frames
    pause_s: float      # the longest silence inside
    voiced: float       # share of the frames that sound


def read_samples(path: str) -> tuple[array.array, int]:
    """About 5,500 samples a second, by averaging."""
    with wave.open(path) as f:
        if (f.getnchannels(), f.getsampwidth()) != (1, 2):
            raise ValueError("not mono with 16 bit")
        rate, data = f.getframerate(), array.array("h", f.readframes(f.getnframes()))
    step = max(1, rate // 5500)
    whole = len(data) // step * step
    return array.array("f", (sum(data[i:i + step]) / step / 32768 for i in range(0, whole, step))), rate // step


def level_db(frame: array.array) -> float:
    return 10 * math.log10(sum(x * x for x in frame) / len(frame) + 1e-12)


def is_voiced(frame: array.array, rate: int) -> bool:
    """Does the frame resemble itself one period later?"""
    size, best = len(frame) // 2, 0.0
    head = frame[:size]
    power = sum(x * x for x in head)
    for lag in range(rate // 400, min(rate // 60, size) + 1):
        later = frame[lag:lag + size]
        norm = math.sqrt(power * sum(x * x for x in later)) + 1e-12
        best = max(best, sum(x * y for x, y in zip(head, later)) / norm)
    return best > 0.6


def listen(path: str) -> Heard:
    samples, rate = read_samples(path)
    size = int(rate * FRAME_S)
    frames = [samples[i:i + size] for i in range(0, len(samples) - size + 1, size)]
    levels = [level_db(frame) for frame in frames]
    loud = [i for i, level in enumerate(levels) if level > QUIET_DB]
    seconds = len(samples) / rate
    if not loud:
        return Heard(seconds, -120.0, 1.0, seconds, 0.0)
    pause = max((b - a - 1 for a, b in zip(loud, loud[1:])), default=0) * FRAME_S
    power = sum(10 ** (levels[i] / 10) for i in loud) / len(loud)
    probed = loud[::max(1, len(loud) // 40)]
    voiced = sum(is_voiced(frames[i], rate) for i in probed) / len(probed)
    return Heard(seconds, 10 * math.log10(power), 1 - len(loud) / len(frames), pause, voiced)


def faults(heard: Heard, text: str) -> list[str]:
    found = []
    pace = len(text) / max(heard.seconds, 0.01)
    if len(text) > 20 and not CHARS_PER_S[0] <= pace <= CHARS_PER_S[1]:
        found.append(f"{heard.seconds:.2f} s for {len(text)} characters")
    if not LOUDNESS_DB[0] <= heard.loudness_db <= LOUDNESS_DB[1]:
        found.append(f"loudness {heard.loudness_db:.1f} dB")
    if heard.silent > SILENT_MOST:
        found.append(f"{100 * heard.silent:.0f} % silence")
    if heard.pause_s > PAUSE_MOST_S:
        found.append(f"{heard.pause_s:.1f} s of silence inside")
    if not VOICED[0] <= heard.voiced <= VOICED[1]:
        found.append(f"{100 * heard.voiced:.0f} % voiced")
    return found


def main() -> int:
    folder, bad, all_heard = sys.argv[1], 0, []
    with open(os.path.join(folder, "manifest.jsonl"), encoding="utf-8") as f:
        lines = {line["id"]: line for line in map(json.loads, f)}
    for line in lines.values():
        heard = listen(os.path.join(folder, line["file"]))
        all_heard.append(heard)
        found = faults(heard, line["text"])
        bad += bool(found)
        if found:
            print(f"{line['id']}: {', '.join(found)}")
    n = max(1, len(all_heard))
    print(f"{len(lines)} files, {sum(h.seconds for h in all_heard):.1f} s: {bad} do not sound like speech; on average "
          f"{sum(h.voiced for h in all_heard) / n:.0%} voiced, {sum(h.silent for h in all_heard) / n:.0%} silent, "
          f"{sum(h.loudness_db for h in all_heard) / n:.1f} dB")
    return 1 if bad or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
