"""What listen.py takes for speech, with sounds that are none and one that has its shape."""
from __future__ import annotations

import math
import os
import random
import struct
import sys
import tempfile
import unittest
import wave
from typing import Callable

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import listen  # noqa: E402

RATE = 22050
TEXT = "A sentence of some thirty letters."


def heard(sound: Callable[[float], float], seconds: float = 2.2) -> listen.Heard:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        with wave.open(file.name, "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(RATE)
            f.writeframes(b"".join(struct.pack("<h", round(32767 * sound(i / RATE))) for i in range(int(seconds * RATE))))
        return listen.listen(file.name)


def buzz(t: float) -> float:
    """A voice-like buzz of 120 Hz."""
    return 0.1 * sum(math.sin(2 * math.pi * 120 * k * t) / k for k in range(1, 12))


def syllables(t: float) -> float:
    """Vowel, hiss and a short stop, four times a second."""
    at = t * 4 % 1
    return buzz(t) if at < 0.5 else random.uniform(-0.05, 0.05) if at < 0.8 else 0.0


class Listen(unittest.TestCase):
    def setUp(self) -> None:
        random.seed(1)

    def faults(self, sound: Callable[[float], float], seconds: float = 2.2) -> str:
        return " ".join(listen.faults(heard(sound, seconds), TEXT))

    def test_speech(self) -> None:
        self.assertEqual(self.faults(syllables), "")

    def test_noise(self) -> None:
        self.assertRegex(self.faults(lambda t: random.uniform(-0.2, 0.2)), r"^\d+ % voiced$")

    def test_tone(self) -> None:
        self.assertEqual(self.faults(buzz), "100 % voiced")

    def test_silence(self) -> None:
        self.assertIn("100 % silence", self.faults(lambda t: 0.0))

    def test_too_long_too_soft_and_broken_off(self) -> None:
        self.assertIn("s for 34 characters", self.faults(syllables, 6))
        self.assertIn("loudness", self.faults(lambda t: 0.05 * syllables(t)) + self.faults(lambda t: 4 * syllables(t)))
        self.assertIn("of silence inside", self.faults(lambda t: 0.0 if 0.3 < t < 1.9 else syllables(t)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
