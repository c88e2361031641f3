"""Transcribes finished sound for job.check.words, with faster-whisper. burst compares the transcript with the text.

$BURST_WORDS names the model. The set-up has put the packages and the model into $BURST_ENV/words. The packages come behind the
engine's own on Python's path. Whisper computes windows of 30 s, so each file costs as much as one of 30 s. On a GPU files of one
language share a batch; on cores, where a batch is no faster, several files compute side by side.
"""
from __future__ import annotations

import io
import os
import sys
import threading
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from burst_wire import log

RATE = 16000
WINDOW = 30 * RATE
BATCH = 8            # files at once on a GPU
SIDE_BY_SIDE = 3     # files at once on cores
FAILURES_LOGGED = 5


@dataclass
class Clip:
    sound: Any  # float samples at RATE
    language: Optional[str]
    text: Optional[str] = None
    error: str = ""
    done: threading.Event = field(default_factory=threading.Event)


def code_of(language: Optional[str]) -> Optional[str]:
    """The code that Whisper knows: "de" of "de_DE-thorsten-high", "pt" of "pt-BR"."""
    code = (language or "").replace("_", "-").split("-")[0].lower()
    return code if code.isalpha() and len(code) in (2, 3) else None


def cores() -> int:
    """Of this worker: those of the pod are shared by all its workers."""
    try:
        here = len(os.sched_getaffinity(0))
    except AttributeError:
        here = os.cpu_count() or 1
    return max(1, here // max(1, int(os.environ.get("BURST_WORKERS", "1") or 1)))


class Hearer:
    def __init__(self, model: str) -> None:
        folder = os.path.join(os.environ.get("BURST_ENV", "."), "words")
        sys.path.append(os.path.join(folder, "packages"))
        import faster_whisper

        self.kit, self.folder, self.english = faster_whisper, os.path.join(folder, "model"), model.endswith(".en")
        self.waiting: list[Clip] = []
        self.lock = threading.Lock()
        self.failures = 0
        self.batches = False
        self.model = self.load_on_gpu() or self.load_on_cores()
        self.room = threading.Semaphore(1 if self.batches else self.side_by_side)

    def load_on_gpu(self) -> Optional[Any]:
        """None if there is no GPU, or CTranslate2 cannot use it: it needs cuBLAS and cuDNN, which torch brings."""
        try:
            import ctranslate2

            if not ctranslate2.get_cuda_device_count():
                return None
            import numpy

            self.model = self.kit.WhisperModel(self.folder, device="cuda", compute_type="float16")
            self.pipeline = self.kit.BatchedInferencePipeline(self.model)
            self.batches, self.side_by_side = True, BATCH
            self.hear_batch([Clip(numpy.zeros(RATE, "float32"), "en")])
        except Exception as error:
            log(f"words: not on the GPU ({type(error).__name__}: {str(error)[:200]}); on the processor instead")
            self.batches = False
            return None
        log("words: heard on the GPU")
        return self.model

    def load_on_cores(self) -> Any:
        self.side_by_side = min(SIDE_BY_SIDE, cores())
        threads = max(1, cores() // self.side_by_side)
        log(f"words: heard on the processor, {self.side_by_side} at once with {threads} threads each")
        return self.kit.WhisperModel(self.folder, device="cpu", compute_type="int8", cpu_threads=threads, num_workers=self.side_by_side)

    def hear(self, wav: bytes, language: Optional[str]) -> Optional[str]:
        """What a WAV file says. None: it could not be heard, which is logged: the file then counts as unchecked."""
        try:
            clip = Clip(self.kit.decode_audio(io.BytesIO(wav), sampling_rate=RATE), "en" if self.english else code_of(language))
            self.hear_clip(clip)
        except Exception as error:
            self.failures += 1
            if self.failures <= FAILURES_LOGGED:
                log(f"words: a file could not be heard: {type(error).__name__}: {str(error)[:200]}")
            return None
        return " ".join(clip.text.split())

    def hear_clip(self, clip: Clip) -> None:
        """Hears it, and on a GPU also what other threads wait with."""
        if not self.batches or len(clip.sound) > WINDOW:
            with self.room:
                clip.text = self.hear_one(clip)
            return
        with self.lock:
            self.waiting.append(clip)
        with self.room:
            if not clip.done.is_set():
                self.hear_waiting(clip)
        if clip.error:
            raise RuntimeError(clip.error)

    def hear_waiting(self, first: Clip) -> None:
        with self.lock:
            same = [c for c in self.waiting if c is first or c.language == first.language]
            same.remove(first)
            batch = [first, *same[:BATCH - 1]]
            self.waiting = [c for c in self.waiting if c not in batch]
        try:
            self.hear_batch(batch)
        except Exception as error:
            for clip in batch:
                clip.error = f"{type(error).__name__}: {error}"
        for clip in batch:
            clip.done.set()

    def hear_one(self, clip: Clip) -> str:
        segments, _ = self.model.transcribe(clip.sound, language=clip.language, beam_size=1, temperature=0.0,
                                            condition_on_previous_text=False, without_timestamps=True)
        return " ".join(s.text for s in segments)

    def hear_batch(self, batch: Sequence[Clip]) -> None:
        """Each clip is a window of its own in one long sound."""
        import numpy

        ends = numpy.cumsum([len(c.sound) for c in batch]) / RATE
        windows = [{"start": float(end - len(c.sound) / RATE), "end": float(end)} for c, end in zip(batch, ends)]
        segments, _ = self.pipeline.transcribe(numpy.concatenate([c.sound for c in batch]), language=batch[0].language, beam_size=1,
                                               temperature=0.0, without_timestamps=True, clip_timestamps=windows, batch_size=BATCH)
        texts = [""] * len(batch)
        for segment in segments:
            n = int(numpy.searchsorted(ends, segment.start + 0.01, side="right"))
            texts[min(n, len(batch) - 1)] += segment.text + " "
        for clip, text in zip(batch, texts):
            clip.text = text


def make_hearer() -> Optional[Hearer]:
    """None: the job does not ask for it."""
    model = os.environ.get("BURST_WORDS", "")
    return Hearer(model) if model else None
