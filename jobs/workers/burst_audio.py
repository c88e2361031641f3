"""Writes samples as a WAV file: mono, 16 bit. Hashes it and renames it into place once it is complete."""
from __future__ import annotations

import array
import hashlib
import math
import os
import struct
import sys
from dataclasses import dataclass
from typing import Any


class BadAudio(Exception):
    """No samples, or no sound in them."""


@dataclass(frozen=True)
class Written:
    bytes: int
    sha256: str
    seconds: float


def pcm16(samples: Any) -> bytes:
    """Converts a tensor, a numpy array or any sequence of floats from -1 to 1."""
    if hasattr(samples, "detach"):
        samples = samples.detach().float().cpu().numpy()
    if hasattr(samples, "astype"):
        return pcm16_numpy(samples.reshape(-1))
    if not len(samples):
        raise BadAudio("no sound came out")
    if not all(map(math.isfinite, samples)):
        raise BadAudio("the sound has samples that are no numbers")
    out = array.array("h", (round(32767 * max(-1.0, min(1.0, x))) for x in samples))
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()


def pcm16_numpy(samples: Any) -> bytes:
    import numpy

    if not samples.size:
        raise BadAudio("no sound came out")
    if not numpy.isfinite(samples).all():
        raise BadAudio("the sound has samples that are no numbers")
    return (samples.clip(-1, 1) * 32767).round().astype("<i2").tobytes()


def write_wav(path: str, pcm: bytes, rate: int) -> Written:
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16,
                       b"data", len(pcm))
    digest = hashlib.sha256(head)
    digest.update(pcm)
    with open(path + ".tmp", "wb") as f:
        f.write(head)
        f.write(pcm)
    os.rename(path + ".tmp", path)
    return Written(len(head) + len(pcm), digest.hexdigest(), len(pcm) / 2 / rate)
