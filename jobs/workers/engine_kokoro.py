"""Kokoro-82M (hexgrad/kokoro): small, with 54 voices of its own. The first letter of a voice's name is its language.

kokoro_text.py turns texts into phonemes, in a thread beside the GPU; kokoro_batch.py makes the sound of many texts at once.
"""
from __future__ import annotations

import concurrent.futures
import os
from typing import Any, Callable, Optional, Sequence

from burst_device import Cuda, Device
from burst_engine import Bad, BadTask, CannotRun, Engine, Option, Spoken, Task, nearest, weights_folder
from burst_read import Coming, Reader, bare
from burst_words import Symbol, find_words
from kokoro_text import phonemizer

WEIGHTS = "kokoro-v1_0.pth"
PHONEMES_MOST = 510        # of one row: a voice has a style for each number
BREAKS = ("!.?…", ":;", ",—", " ")  # places to cut a longer text, best first
LONGEST = 400              # phonemes in a rehearsal
PART_SEED = 1_000_003      # gives each part of a long text its own noise
SEED_MOST = (1 << 63) - 1
FRAME = 600                # samples


def parts(phonemes: str) -> list[str]:
    """Cuts into parts of at most PHONEMES_MOST, each behind the last of the best breaks."""
    found, phonemes = [], phonemes.strip()
    while len(phonemes) > PHONEMES_MOST:
        head = phonemes[:PHONEMES_MOST]
        cuts = (max(head.rfind(mark) for mark in marks) + 1 for marks in BREAKS)
        cut = next((c for c in cuts if c > 1), PHONEMES_MOST)
        found.append(phonemes[:cut].strip())
        phonemes = phonemes[cut:].strip()
    return [p for p in [*found, phonemes] if p]


class Kokoro(Engine):
    name = "kokoro"
    packages = ("kokoro", "torch", "misaki", "phonemizer-fork", "espeakng-loader", "spacy")
    sample_rate = 24000
    options = {"speed": Option(0.5, 2, 1.0)}
    wave_batch = 16
    wave_budget = 2000.0       # letters in one call: some 130 s of sound
    warm_up_voice = "af_heart"

    def __init__(self) -> None:
        self.packs: dict[str, Any] = {}
        self.phonemizers: dict[str, Callable[[str], str]] = {}
        self.reading = concurrent.futures.ThreadPoolExecutor(1)  # a phonemizer is not thread-safe

    # ---- loading ----

    def make_device(self) -> Device:
        import torch

        self.where = "cuda"
        return Cuda(torch)

    def begin(self) -> None:
        self.folder = weights_folder()
        missing = [name for name in ("config.json", WEIGHTS) if not os.path.exists(os.path.join(self.folder, name))]
        if missing:
            raise CannotRun(f"{self.folder} lacks {' and '.join(missing)}: the engine's set-up is incomplete")
        self.reader = Reader([os.path.join(self.folder, WEIGHTS)])

    def weights_file(self) -> Any:
        """A file for torch.load() in place of the path. Waiting for it does not count as build time."""
        def come() -> bytearray:
            with self.phase("read"):
                return self.reader.data(os.path.join(self.folder, WEIGHTS))

        return Coming(come)

    def load(self) -> None:
        with self.phase("import"):
            from kokoro_batch import model_class

            make = model_class()
            from loguru import logger
        logger.disable("kokoro")  # it would print the whole vocabulary
        self.reading.submit(self.phonemizer, self.warm_up_voice[0])
        self.voices = sorted(f[:-len(".pt")] for f in os.listdir(os.path.join(self.folder, "voices")) if f.endswith(".pt"))
        if self.warm_up_voice not in self.voices:
            raise CannotRun(f"there is no voice {self.warm_up_voice} in {self.folder}: the engine's set-up is incomplete")
        with bare():
            self.model = make(repo_id="hexgrad/Kokoro-82M", config=os.path.join(self.folder, "config.json"), model=self.weights_file())
        self.reader.close()
        self.model.to(self.where).eval().requires_grad_(False)

    # ---- voices ----

    def voice(self, task: Task) -> str:
        return task.voice or self.warm_up_voice

    def check(self, task: Task) -> None:
        name = self.voice(task)
        if task.voice_file:
            raise BadTask(f"voice {name!r}: kokoro has voices of its own alone and takes no sample")
        if name not in self.voices:
            raise BadTask(f"unknown voice {name!r}{nearest(name, self.voices)}")

    def pack(self, name: str) -> Any:
        """The styles of a voice: one for each number of phonemes."""
        import torch

        if name not in self.packs:
            self.packs[name] = torch.load(os.path.join(self.folder, "voices", f"{name}.pt"), map_location="cpu", weights_only=True)
        return self.packs[name]

    # ---- text to phonemes ----

    def phonemizer(self, letter: str) -> Callable[[str], str]:
        if letter not in self.phonemizers:
            self.phonemizers[letter] = phonemizer(letter)
        return self.phonemizers[letter]

    def phonemes(self, task: Task) -> list[str]:
        return parts(self.phonemizer(self.voice(task)[0])(task.text))

    def tokens(self, tasks: Sequence[Task]) -> Sequence[Any]:
        """Starts a thread, so that phonemes of later rows are made while the first rows are on the GPU."""
        return [self.reading.submit(self.phonemes, task) for task in tasks]

    # ---- phonemes to sound ----

    def row(self, phonemes: str, voice: str) -> Optional[tuple[Any, Any]]:
        """Ids and style of one part, or None if it has nothing to speak. The number of all phonemes chooses the style, as published."""
        import torch

        numbers = [n for n in map(self.model.vocab.get, phonemes) if n is not None]
        pack = self.pack(voice)
        return (torch.tensor([0, *numbers, 0]), pack[min(len(phonemes), len(pack)) - 1].reshape(-1)) if numbers else None

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        rows, owners, seeds, said = [], [], [], []
        for i, (task, coming) in enumerate(zip(tasks, tokens)):
            for part, phonemes in enumerate(coming.result()):
                row = self.row(phonemes, self.voice(task))
                if row:
                    rows.append(row)
                    owners.append(i)
                    said.append(phonemes)
                    seeds.append((task.seed + part * PART_SEED) & SEED_MOST)
        speeds = [float(tasks[i].options.get("speed", 1.0)) for i in owners]
        waves, durations = self.speak(rows, speeds, seeds) if rows else ([], [])
        found = self.join(len(tasks), owners, waves)
        symbols = self.symbols(len(tasks), owners, said, waves, durations)
        return [wave if isinstance(wave, Bad) else Spoken(wave, find_words(task.text, heard))
                for task, wave, heard in zip(tasks, found, symbols)]

    def symbols(self, count: int, owners: Sequence[int], said: Sequence[str], waves: Sequence[Any],
                durations: Sequence[Any]) -> list[list[Symbol]]:
        """The phonemes of each text, with their samples."""
        of: list[list[Symbol]] = [[] for _ in range(count)]
        starts = [0] * count
        for i, phonemes, wave, frames in zip(owners, said, waves, durations):
            lengths = [FRAME * n for n in frames.tolist()]
            at = starts[i] + lengths[0]
            for phoneme, length in zip((p for p in phonemes if p in self.model.vocab), lengths[1:-1]):
                of[i].append(Symbol(phoneme, at, at + length))
                at += length
            starts[i] += wave.numel()
            of[i].append(Symbol(" ", starts[i], starts[i]))
        return of

    def speak(self, rows: Sequence[tuple[Any, Any]], speeds: Sequence[float], seeds: Sequence[int]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Samples and durations of each row."""
        import torch
        from kokoro_batch import Batch

        styles = torch.stack([style for _, style in rows]).to(self.where)
        return Batch(self.model, [numbers for numbers, _ in rows], styles, speeds, seeds).speak()

    @staticmethod
    def join(count: int, owners: Sequence[int], waves: Sequence[Any]) -> list[Any]:
        """Concatenates the parts of each text."""
        import torch

        of: list[list[Any]] = [[] for _ in range(count)]
        for i, wave in zip(owners, waves):
            of[i].append(wave)
        return [torch.cat(w) if w else Bad("nothing in the text can be said") for w in of]

    def finish(self, task: Task, wave: Any) -> Any:
        return wave.detach().float().cpu().numpy()

    def rehearse(self, b: int) -> None:
        """Renders the longest rows of one call."""
        import torch

        rows = max(1, min(b, self.wave_batch, int(self.wave_budget / LONGEST)))
        known = torch.tensor(sorted(self.model.vocab.values()))
        numbers = torch.cat([torch.zeros(1, dtype=torch.long), known.repeat(LONGEST // len(known) + 1)[:LONGEST], torch.zeros(1, dtype=torch.long)])
        style = self.pack(self.warm_up_voice)[LONGEST - 1].reshape(-1)
        self.speak([(numbers, style)] * rows, [1.0] * rows, list(range(rows)))


ENGINE = Kokoro
