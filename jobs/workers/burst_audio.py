"""Writes samples as a WAV file: mono, 16 bit. Hashes it and renames it into place once it is complete."""
from __future__ import annotations

import array
import hashlib
import math
import os
import struct
import sys
from dataclasses import dataclass
from typing import Any, Optional, Sequence


class BadAudio(Exception):
    """No samples, or no sound in them."""


@dataclass(frozen=True)
class Written:
    bytes: int
    sha256: str
    seconds: float


@dataclass(frozen=True)
class Word:
    """A word as it stands in the text, and when it is heard, in samples."""
    text: str
    begin: int
    length: int


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


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def word_marks(words: Sequence[Word]) -> bytes:
    """The chunks behind the samples that mark the words: `cue ` and LIST (jobs/PROTOCOL.md)."""
    if not words:
        return b""
    cues, labels = struct.pack("<I", len(words)), b"adtl"
    for number, word in enumerate(words, 1):
        cues += struct.pack("<II4sIII", number, word.begin, b"data", 0, 0, word.begin)
        labels += chunk(b"ltxt", struct.pack("<II4sQ", number, word.length, b"rgn ", 0))
        labels += chunk(b"labl", struct.pack("<I", number) + word.text.encode() + b"\0")
    return chunk(b"cue ", cues) + chunk(b"LIST", labels)


def transcript(heard: Optional[str]) -> bytes:
    """The chunk behind the samples that says what was heard in them (jobs/PROTOCOL.md); b"" for None."""
    return b"" if heard is None else chunk(b"hear", heard.encode("utf-8", "replace"))


def wav_head(pcm: bytes, rate: int, behind: int = 0) -> bytes:
    """The header of a file with so many bytes behind the samples."""
    return struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(pcm) + behind, b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16,
                       b"data", len(pcm))


def write_wav(path: str, pcm: bytes, rate: int, words: Sequence[Word] = (), heard: Optional[str] = None) -> Written:
    behind = word_marks(words) + transcript(heard)
    head = wav_head(pcm, rate, len(behind))
    digest = hashlib.sha256()
    with open(path + ".tmp", "wb") as f:
        for part in (head, pcm, behind):
            digest.update(part)
            f.write(part)
    os.rename(path + ".tmp", path)
    return Written(len(head) + len(pcm) + len(behind), digest.hexdigest(), len(pcm) / 2 / rate)
