"""Qwen3-TTS in batches against the published code one by one: the published classes with random weights, on the processor.

Needs the package, which is not Debian's: `make qwen3-packages` (torch; some GB) puts it where this test looks for it, and without it
all is skipped. The shapes are tiny (qwen3_twin.py); prompts, loop, sampling and sound are as published.
"""
from __future__ import annotations

import os
import random
import sys
import tempfile
import unittest
import wave
from typing import Any, Optional
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

sys.path.insert(0, HERE)
import packages  # noqa: E402

packages.enter("qwen3")

sys.path.insert(0, os.path.join(ROOT, "jobs", "workers"))
sys.dont_write_bytecode = True
for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TQDM_DISABLE"):
    os.environ.setdefault(variable, "1")

try:
    import numpy
    import torch
    import qwen3_twin
    from transformers.utils import logging

    logging.set_verbosity_error()
    MISSING = ""
except ImportError as error:
    MISSING = f"the package qwen-tts is not there ({error}): make qwen3-packages"

if not MISSING:
    from burst_device import Cpu
    from burst_engine import Bad, BadTask, CannotRun, Task, read_task
    from burst_render import Renderer
    from burst_worker import warm_up
    from engine_qwen3 import Qwen3
    from qwen3_talk import FRAMES_MOST, Row, Talk

LANGUAGES = ("auto", "english", "german", "chinese")
TEXTS = 16


def make_engine(folder: str, *kind: str, shape: Optional[dict[str, Any]] = None, number: Any = None) -> Any:
    """From a folder of weights, as on a pod but for the device."""
    class Twin(Qwen3):
        def make_device(self) -> Any:
            self.where, self.number = "cpu", number or torch.float32
            return Cpu()

        def cap(self, task: Task) -> int:
            """Some rows end before the others also where no end comes up."""
            return 6 + len(task.text) % 17

    engine = Twin(*kind)
    weights = os.path.join(folder, "weights")
    if not os.path.exists(weights):
        qwen3_twin.make_folder(weights, "base" if engine.clones else "custom_voice", "1b7" if engine.size_name == "1.7b" else "0b6",
                               shape or qwen3_twin.TINY)
    engine.make_device()
    with mock.patch.dict(os.environ, BURST_ENV=folder):
        engine.load()
    return engine


def make_sample(path: str, seconds: float, seed: int) -> None:
    noise = (numpy.random.default_rng(seed).standard_normal(int(16000 * seconds)) * 3000).astype("<i2")
    with wave.open(path, "wb") as f:
        f.setnchannels(1), f.setsampwidth(2), f.setframerate(16000)
        f.writeframes(noise.tobytes())


class FromDraws:
    """In place of torch.multinomial: the draws of one row, one after the other."""

    def __init__(self, seed: int, books: int) -> None:
        self.draws = iter(torch.rand(FRAMES_MOST + 1, books, generator=torch.Generator().manual_seed(seed)).reshape(-1))

    def __call__(self, probs: Any, num_samples: int) -> Any:
        reached = probs.float().cumsum(-1)
        return torch.searchsorted(reached, next(self.draws) * reached[:, -1:], right=True).clamp(max=probs.size(-1) - 1)


@unittest.skipIf(MISSING, MISSING)
class Custom(unittest.TestCase):
    kind: tuple[str, ...] = ("custom", "1.7b")

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        cls.folder = tempfile.TemporaryDirectory()
        cls.engine = make_engine(cls.folder.name, *cls.kind)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(mock.patch.stopall)
        mock.patch.dict(os.environ, BURST_KIT=cls.folder.name).start()
        for name, seconds in (("anna", 0.7), ("ben", 0.4), ("mute", 0.5)):
            make_sample(f"{cls.folder.name}/voice-{name}.wav", seconds, len(name))
        for name, words in (("anna", "Some words,\n as said."), ("ben", "Others.")):
            with open(f"{cls.folder.name}/voice-{name}.txt", "w", encoding="utf-8") as f:
                f.write(words + "\n")
        cls.tasks = [cls.task(i) for i in range(TEXTS)]
        cls.alone = [cls.published(task) for task in cls.tasks]

    @classmethod
    def task(cls, i: int) -> Any:
        options: dict[str, Any] = {"language": LANGUAGES[i % 4], "temperature": (0.9, 0.7)[i % 2], "subtalker_top_k": 5 + i % 20}
        if i % 3 == 0:
            options["instruct"] = "Slowly, " * (i % 4)
        if i % 5 == 0:
            options.update(top_p=0.8, subtalker_top_p=0.7, repetition_penalty=1.3, top_k=20)
        return Task(f"s{i}", f"s{i}.wav", f"This is text {i}." * (1 + i * 7 % 4), qwen3_twin.SPEAKERS[i % 9], None, 100 + i, options)

    @classmethod
    def published(cls, task: Any) -> tuple[Any, Any]:
        """The codes and the sound of the public call for one text."""
        wrapper, codes, options = cls.engine.wrapper, [], dict(task.options)
        given = {"text": task.text, "language": options.pop("language"), "max_new_tokens": cls.engine.cap(task) + 1}
        talk = wrapper.model.generate

        def keep(**more: Any) -> Any:
            found = talk(**more)
            codes.append(found[0][0])
            return found

        with mock.patch("torch.multinomial", FromDraws(task.seed, 4)), mock.patch.object(wrapper.model, "generate", keep):
            waves, rate = cls.call(wrapper, task, given, options)
        assert rate == 24000
        return codes[0], waves[0]

    @classmethod
    def call(cls, wrapper: Any, task: Any, given: dict[str, Any], options: dict[str, Any]) -> Any:
        return wrapper.generate_custom_voice(speaker=task.voice, **given, **options)

    def spoken(self, order: list[int]) -> dict[int, Any]:
        with torch.inference_mode():
            rows, pad = self.engine.rows([self.tasks[i] for i in order])
        return dict(zip(order, Talk(self.engine.wrapper.model.talker, rows, pad, lambda _: None).speak()))

    def check_codes(self, order: list[int]) -> None:
        for i, spoken in self.spoken(order).items():
            self.assertEqual(spoken.codes.tolist(), self.alone[i][0].tolist(), f"text {i} in a batch of {len(order)}")

    def test_batches_equal_the_published_code_one_by_one(self) -> None:
        for size in (1, 2, 5, 16):
            for at in range(0, TEXTS, size):
                self.check_codes(list(range(TEXTS))[at:at + size])

    def test_the_order_does_not_matter(self) -> None:
        order = list(range(TEXTS))
        random.Random(3).shuffle(order)
        self.check_codes(order)
        self.check_codes(order[:7])

    def test_half_precision_as_on_a_gpu(self) -> None:
        engine = make_engine(self.folder.name, *self.kind, number=torch.bfloat16)
        self.assertEqual(next(engine.sound.parameters()).dtype, torch.bfloat16)
        with torch.inference_mode():
            rows, pad = engine.rows(self.tasks[:5])
            codes = [s.codes for s in Talk(engine.wrapper.model.talker, rows, pad, lambda _: None).speak()]
        spoken = [i for i in range(5) if len(codes[i])]
        self.assertTrue(spoken)
        for i, sound in zip(spoken, engine.waves([self.tasks[i] for i in spoken], [codes[i] for i in spoken])):
            samples = engine.finish(self.tasks[i], sound)
            self.assertTrue(numpy.isfinite(samples).all())
            self.assertAlmostEqual(len(samples), 1920 * len(codes[i]), delta=1)
        engine.rehearse(3)

    def test_rows_end_at_different_times(self) -> None:
        said = self.spoken(list(range(TEXTS)))
        self.assertGreater(len({len(s.codes) for s in said.values()}), 3)
        self.assertIn(True, [s.ended for s in said.values()])
        self.assertIn(False, [s.ended for s in said.values()])
        for i, row in said.items():
            self.assertLessEqual(len(row.codes), self.engine.cap(self.tasks[i]))

    def test_the_seed_decides(self) -> None:
        tasks = [Task("a", "a.wav", self.tasks[1].text, self.tasks[1].voice, self.tasks[1].voice_file, seed) for seed in (1, 2, 1)]
        with torch.inference_mode():
            rows, pad = self.engine.rows(tasks)
            one, two, three = (s.codes.tolist() for s in Talk(self.engine.wrapper.model.talker, rows, pad, lambda _: None).speak())
        self.assertEqual(one, three)
        self.assertNotEqual(one, two)

    def test_sound_of_batches_equals_the_published_code(self) -> None:
        loudest = max(float(abs(alone[1]).max()) for alone in self.alone if len(alone[1]))
        self.assertGreater(loudest, 0.01)
        order = [i for i in range(TEXTS) if len(self.alone[i][0])]
        for size in (2, 5, 16):
            for at in range(0, len(order), size):
                now = order[at:at + size]
                waves = self.engine.waves([self.tasks[i] for i in now], [self.alone[i][0] for i in now])
                for i, sound in zip(now, waves):
                    self.assertEqual(sound.shape, self.alone[i][1].shape)
                    self.assertLess(abs(sound.numpy() - self.alone[i][1]).max(), 1e-5 * max(1.0, loudest), f"text {i} of {size}")

    def test_long_rows_are_decoded_in_parts_as_published(self) -> None:
        chance = torch.Generator().manual_seed(1)
        codes = [torch.randint(0, 32, (n, 4), generator=chance) for n in (310, 20)]
        tasks = [Task("a", "a.wav", "x", "mute", "voice-mute.wav"), Task("b", "b.wav", "x", "mute", "voice-mute.wav")]  # no words: cut nowhere
        for sound, alone in zip(self.engine.waves(tasks, codes), codes):
            published = self.engine.wrapper.model.speech_tokenizer.decode([{"audio_codes": alone}])[0][0]
            self.assertEqual(sound.shape, published.shape)
            self.assertLess(abs(sound.numpy() - published).max(), 1e-5)

    def test_a_row_that_never_ends_is_bad_and_holds_nobody_up(self) -> None:
        said = self.spoken(list(range(TEXTS)))
        for i, verdict in enumerate(self.engine.tokens(self.tasks)):
            if said[i].ended and len(said[i].codes):
                self.assertEqual(verdict.tolist(), self.alone[i][0].tolist())
            else:
                self.assertRegex(verdict.why, "no speech came out" if said[i].ended else r"did not end within [0-9.]+ s")

    def test_a_row_of_no_numbers_is_bad_and_spoils_no_other(self) -> None:
        with torch.inference_mode():
            rows, pad = self.engine.rows(self.tasks[:3])
            rows[1].prompt = rows[1].prompt * float("nan")
            said = Talk(self.engine.wrapper.model.talker, rows, pad, lambda _: None).speak()
        self.assertEqual([s.broken for s in said], [False, True, False])
        self.assertEqual(self.engine.judge(said[1], 9).why, "the model gave values that are no numbers")
        self.assertEqual(said[2].codes.tolist(), self.alone[2][0].tolist())

    def test_warm_up_and_rehearsal(self) -> None:
        with mock.patch.object(self.engine, "cap", lambda task: 3):  # nothing ends by itself in so few frames
            warm_up(self.engine)
        self.engine.rehearse(2)

    def test_through_the_harness(self) -> None:
        said: list[dict[str, Any]] = []
        wire = mock.Mock(say=lambda **line: said.append(line))
        out = tempfile.mkdtemp(dir=self.folder.name)
        with mock.patch.object(self.engine, "judge", lambda spoken, *_: spoken.codes if len(spoken.codes) else Bad("empty")):
            Renderer(self.engine, Cpu(), wire, out, 16).render({"batch": "b", "segments": [
                {"id": t.id, "file": t.file, "text": t.text, "voice": t.voice, "voice_file": t.voice_file, "seed": t.seed, "options": t.options}
                for t in self.tasks[:5]]})
        self.assertEqual(said[-1], {"batch": "b", "done": True})
        for line in said[:-1]:
            self.assertTrue(line["ok"], line)
            i = int(line["segment"][1:])
            if len(self.alone[i][1]):
                with wave.open(f"{out}/s{i}.wav") as f:
                    self.assertEqual((f.getframerate(), f.getnframes()), (24000, len(self.alone[i][1])))


@unittest.skipIf(MISSING, MISSING)
class Clone(Custom):
    kind = ("clone", "0.6b")

    @classmethod
    def task(cls, i: int) -> Any:
        """Two voices with their words, one without."""
        task, name = super().task(i), ("anna", "ben", "mute")[i % 3]
        options = {name: value for name, value in task.options.items() if name != "instruct"}
        return Task(task.id, task.file, task.text, name, f"voice-{name}.wav", task.seed, options)

    @classmethod
    def call(cls, wrapper: Any, task: Any, given: dict[str, Any], options: dict[str, Any]) -> Any:
        words = {"anna": "Some words, as said.", "ben": "Others.", "mute": None}[task.voice]
        return wrapper.generate_voice_clone(ref_audio=f"{cls.folder.name}/{task.voice_file}", ref_text=words, x_vector_only_mode=words is None,
                                            **given, **options)

    def test_a_sample_is_prepared_once(self) -> None:
        engine = make_engine(self.folder.name, *self.kind)
        with mock.patch.object(engine.wrapper, "create_voice_clone_prompt", wraps=engine.wrapper.create_voice_clone_prompt) as prepare:
            engine.tokens(self.tasks[:6])
            engine.tokens(self.tasks[6:9])
        self.assertEqual(prepare.call_count, 3)
        self.assertEqual([c.kwargs["x_vector_only_mode"] for c in prepare.call_args_list], [False, False, True])

    def test_samples_that_cannot_be_used(self) -> None:
        with open(f"{self.folder.name}/voice-text.wav", "w", encoding="utf-8") as f:
            f.write("this is no sound")
        for name, why in (("voice-text.wav", "the voice sample voice-text.wav cannot be used"),
                          ("voice-none.wav", "the voice sample voice-none.wav cannot be used"), (None, "takes voices from files alone")):
            with self.assertRaisesRegex(BadTask, why):
                self.engine.check(Task("a", "a.wav", "text", "x", name))
        with self.assertRaisesRegex(BadTask, "needs a voice"):
            self.engine.check(Task("a", "a.wav", "text"))


@unittest.skipIf(MISSING, MISSING)
class Names(unittest.TestCase):
    def test_names_of_engines(self) -> None:
        self.assertEqual([Qwen3(*kind).name for kind in ((), ("custom", "1.7b"), ("clone",), ("clone", "1.7b"))],
                         ["qwen3", "qwen3-1.7b", "qwen3-clone", "qwen3-1.7b-clone"])

    def test_what_is_wrong_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            engine = make_engine(folder, "custom", "0.6b")
            for more, why in (({"voice": "rian"}, "unknown voice 'rian', did you mean 'ryan'"),
                              ({"options": {"language": "englisch"}}, "option language must be one of its words, not 'englisch', did you mean 'english'"),
                              ({"options": {"language": 3}}, "option language must be one of its words"),
                              ({"options": {"instruct": "sadly"}}, "unknown option 'instruct'"),
                              ({"voice": "anna", "voice_file": "voice-anna.wav"}, "a sample needs qwen3-clone"),
                              ({"options": {"top_k": 1.5}}, "option top_k must be a whole number")):
                with self.assertRaisesRegex(BadTask, why):
                    read_task({"id": "a", "file": "a.wav", "text": "text", **more}, engine)
            self.assertEqual(read_task({"id": "a", "file": "a.wav", "text": "text", "voice": "Ryan"}, engine).voice, "Ryan")
            self.assertEqual((engine.sample_rate, engine.weights()), (24000, "0123456789abcdef"))
            other = Qwen3("clone", "0.6b")
            other.where, other.number = "cpu", torch.float32
            with mock.patch.dict(os.environ, BURST_ENV=folder), self.assertRaisesRegex(CannotRun, "needs base"):
                other.load()

    def test_caps_follow_the_text(self) -> None:
        engine = Qwen3()
        self.assertEqual([engine.cap(Task("a", "", text)) for text in ("x" * 15, "x" * 150, "\u6587" * 40, "x" * 9000)], [47, 250, 235, FRAMES_MOST])


if __name__ == "__main__":
    unittest.main(verbosity=2)
