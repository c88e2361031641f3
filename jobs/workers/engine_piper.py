"""Piper (OHF-Voice/piper1-gpl, package piper-tts): neural voices on the processor, through ONNX Runtime. piper_voice.py has put the
voices into $BURST_ENV/voices."""
from __future__ import annotations

import glob
import hashlib
import json
import os
from typing import Any, Sequence

from burst_engine import BadTask, CannotRun, Engine, Option, Spoken, Task, nearest
from burst_words import Symbol, find_words

FRAMES_A_PHONEME = 60  # more than any phoneme needs at usual speed; a frame has 256 samples


class Piper(Engine):
    name = "piper"
    packages = ("piper-tts", "onnxruntime")
    options = {"speed": Option(0.25, 4, 1), "noise_scale": Option(0, 2, 0.667), "noise_w": Option(0, 2, 0.8),
               "speaker": Option(0, 9999, 0, whole=True), "sentence_silence": Option(0, 5, 0)}
    batching = "none"
    wave_batch = 1

    def load(self) -> None:
        with self.phase("import"):
            import numpy
            import onnxruntime
            from piper import PiperVoice

        self.numpy, self.onnxruntime, self.reader = numpy, onnxruntime, PiperVoice
        self.folder = os.path.join(os.environ.get("BURST_ENV", "."), "voices")
        self.known = sorted(os.path.basename(p)[:-len(".onnx")] for p in glob.glob(f"{self.folder}/*.onnx"))
        if not self.known:
            raise CannotRun(f"there is no voice in {self.folder}: the engine's set-up is incomplete")
        with open(os.path.join(self.folder, "weights.json"), encoding="utf-8") as f:
            self.hashes = json.load(f)
        self.voices = {name: self.open_voice(name) for name in self.known}
        rates = {voice.config.sample_rate for voice in self.voices.values()}
        if len(rates) > 1:
            raise CannotRun(f"the voices of a job must have one sample rate, these have {sorted(rates)}: {', '.join(self.known)}")
        self.sample_rate = rates.pop()
        self.warm_up_voice = self.known[0]

    def open_voice(self, name: str) -> Any:
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, len(os.sched_getaffinity(0)) // max(1, int(os.environ.get("BURST_WORKERS", "1"))))
        with open(f"{self.folder}/{name}.onnx.json", encoding="utf-8") as f:
            config = json.load(f)
        session = self.onnxruntime.InferenceSession(f"{self.folder}/{name}.onnx", options, providers=["CPUExecutionProvider"])
        from piper.config import PiperConfig

        return self.reader(session=session, config=PiperConfig.from_dict(config))

    def weights(self) -> str:
        """The published hash of one voice, or a hash over those of several."""
        if len(self.hashes) == 1:
            return next(iter(self.hashes.values()))
        return hashlib.sha256(json.dumps(self.hashes, sort_keys=True).encode()).hexdigest()

    def check(self, task: Task) -> None:
        voice = task.voice or self.known[0]
        if voice not in self.voices:
            raise BadTask(f"unknown voice {voice!r}{nearest(voice, self.known)}")
        speakers = self.voices[voice].config.num_speakers
        if task.options.get("speaker", 0) >= max(1, speakers):
            raise BadTask(f"voice {voice} has {speakers} speakers: speaker must be less")

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        return [self.speak(task) for task in tasks]

    def speak(self, task: Task) -> Any:
        voice = self.voices[task.voice or self.known[0]]
        chance = self.numpy.random.Generator(self.numpy.random.PCG64(task.seed))
        silence = self.numpy.zeros(int(task.options.get("sentence_silence", 0) * self.sample_rate), self.numpy.float32)
        parts, symbols, at = [], [], 0
        for phonemes in filter(None, voice.phonemize(task.text)):
            if parts:
                parts.append(silence)
                at += len(silence)
            sound, durations = self.sentence(voice, voice.phonemes_to_ids(phonemes), task.options, chance)
            symbols += self.symbols(voice, phonemes, durations, len(sound), at)
            parts.append(sound)
            at += len(sound)
        wave = self.numpy.concatenate(parts) if parts else self.numpy.zeros(0, self.numpy.float32)
        return Spoken(wave, find_words(task.text, symbols))

    def symbols(self, voice: Any, phonemes: Sequence[str], durations: Any, samples: int, at: int) -> list[Symbol]:
        """The phonemes of a sentence with their samples; [] if the voice does not tell their durations."""
        known = voice.config.phoneme_id_map
        if durations is None or not all(isinstance(known.get(p, []), list) for p in phonemes):
            return []
        pad, first, last = len(known["_"]), len(known["^"]), len(known["$"])
        if sum(len(known[p]) + pad for p in phonemes if p in known) + first + pad + last != len(durations):
            return []
        ends = self.numpy.cumsum(durations) * (samples / max(1.0, float(durations.sum())))
        found, i = [], first + pad
        for phoneme in phonemes:
            if phoneme in known:
                behind = i + len(known[phoneme]) + pad
                found.append(Symbol(phoneme, at + int(ends[i - 1]), at + int(ends[behind - 1])))
                i = behind
        return [*found, Symbol(" ", at + samples, at + samples)]

    def sentence(self, voice: Any, ids: list[int], options: dict[str, Any], chance: Any) -> tuple[Any, Any]:
        """Samples, and frames of each id; None for these if the voice was prepared before they were asked for."""
        numpy, config = self.numpy, voice.config
        slow = config.length_scale / options.get("speed", 1)
        frames = int(len(ids) * FRAMES_A_PHONEME * max(1.0, slow)) + 200
        given = {
            "input": numpy.array([ids], numpy.int64),
            "input_lengths": numpy.array([len(ids)], numpy.int64),
            "scales": numpy.array([options.get("noise_scale", config.noise_scale), slow, options.get("noise_w", config.noise_w_scale)],
                                  numpy.float32),
            "noise_length": chance.standard_normal((1, 2, len(ids)), numpy.float32),
            "noise_sound": chance.standard_normal((frames, 192), numpy.float32).T[None],
        }
        if config.num_speakers > 1:
            given["sid"] = numpy.array([options.get("speaker", config.default_speaker_id or 0)], numpy.int64)
        names = [output.name for output in voice.session.get_outputs()]
        results = dict(zip(names, voice.session.run(None, given)))
        durations = results.get("durations")
        return results[names[0]].reshape(-1), None if durations is None else durations.reshape(-1)


ENGINE = Piper
