"""A stand-in of faster-whisper for tests: it hears what engine_fake.py with SPELL=1 wrote into its samples. The names are those that
burst_hear.py uses. DEAF=1: it fails. DEAF_TO=TEXT: it fails at files with this text."""
from __future__ import annotations

import os
import struct
from types import SimpleNamespace
from typing import Any, BinaryIO

MARK = 0.75  # engine_fake.py: such a sample stands before the text and behind it


def decode_audio(file: BinaryIO, sampling_rate: int) -> list[float]:
    data = file.read()
    samples = struct.unpack(f"<{(len(data) - 44) // 2}h", data[44:])
    return [s / 32767 for s in samples]


class WhisperModel:
    def __init__(self, path: str, **settings: Any) -> None:
        assert settings["device"] == "cpu" and os.path.basename(path) == "model", (path, settings)

    def transcribe(self, sound: list[float], **settings: Any) -> tuple[list[Any], None]:
        first, last = sound.index(max(sound)), len(sound) - 1 - sound[::-1].index(max(sound))
        text = bytes(round(s * 512) for s in sound[first + 1:last]).decode()
        if "DEAF" in os.environ or os.environ.get("DEAF_TO", "\0") in text:
            raise RuntimeError("nothing is heard here")
        return [SimpleNamespace(text=" " + text, start=0.0)], None
