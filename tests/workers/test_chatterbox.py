"""Chatterbox in batches against the published code one by one: the published classes with random weights, on the processor.

Needs the package, which is not Debian's: `make chatterbox-packages` (torch; some GB) puts it where this test looks for it, and
without it all is skipped. The transformers have fewer layers than the published ones; all else is as published.
"""
from __future__ import annotations

import array
import concurrent.futures
import os
import sys
import tempfile
import types
import unittest
import wave
from typing import Any, Optional
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

sys.path.insert(0, HERE)
import packages  # noqa: E402

packages.enter("chatterbox")

sys.path.insert(0, os.path.join(ROOT, "jobs", "workers"))
sys.dont_write_bytecode = True
os.environ.setdefault("TQDM_DISABLE", "1")

try:
    import torch
    from chatterbox.models.t3 import T3
    from chatterbox.models.t3 import llama_configs
    from chatterbox.models.t3.modules.cond_enc import T3Cond
    from chatterbox.models.t3.modules.t3_config import T3Config

    MISSING = ""
except ImportError as error:
    MISSING = f"the package chatterbox-tts is not there ({error}): make chatterbox-packages"

if not MISSING:
    import chatterbox_sound
    import perth
    from chatterbox.models.s3gen import S3Gen
    from chatterbox_sound import Sound
    from chatterbox_slots import Model
    from chatterbox_t3 import Row, Speech, make_head, prompts

LAYERS = 2


def cap(i: int) -> int:
    """Some rows end before the others also where no end token comes up."""
    return 10 + 5 * i % 23


def make_t3(turbo: bool) -> Any:
    """With a head whose choices are few enough for an end token to come up."""
    torch.manual_seed(7)
    name = "GPT2_medium" if turbo else "Llama_520M"
    small = {**llama_configs.LLAMA_CONFIGS[name], "n_layer" if turbo else "num_hidden_layers": LAYERS}
    with mock.patch.dict(llama_configs.LLAMA_CONFIGS, {name: small}):
        hp = T3Config(text_tokens_dict_size=50276 if turbo else 704)
        if turbo:
            hp.llama_config_name, hp.input_pos_emb, hp.speech_tokens_dict_size = "GPT2_medium", None, 6563
            hp.speech_cond_prompt_len, hp.use_perceiver_resampler, hp.emotion_adv = 375, False, False
        t3 = T3(hp).eval()
    with torch.no_grad():
        t3.speech_head.weight.mul_(6)
    return t3


def make_cond(t3: Any, turbo: bool, exaggeration: float) -> Any:
    torch.manual_seed(3)
    tokens = torch.randint(0, 6000, (1, t3.hp.speech_cond_prompt_len))
    return T3Cond(speaker_emb=torch.randn(1, 256), cond_prompt_speech_tokens=tokens,
                  emotion_adv=exaggeration * torch.ones(1, 1, 1))


def make_texts(n: int) -> list[Any]:
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(1, 250, (1, 4 + 7 * i % 37), generator=generator) for i in range(n)]


class FromDraws:
    """In place of torch.multinomial: the batch's own draws of one row, one after the other."""

    def __init__(self, seed: int) -> None:
        self.draws = iter(torch.rand(1000, generator=torch.Generator().manual_seed(seed)))

    def __call__(self, probs: Any, num_samples: int) -> Any:
        reached = probs.float().cumsum(-1)
        return torch.searchsorted(reached, next(self.draws) * reached[:, -1:], right=True).clamp(max=probs.size(-1) - 1)


@unittest.skipIf(MISSING, MISSING)
class Regular(unittest.TestCase):
    turbo = False
    t3: Any = None

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        cls.t3 = make_t3(cls.turbo)
        cls.texts = make_texts(16)
        cls.t3.hp.stop_speech_token = cls.common_token()
        cls.alone = [cls.published(i) for i in range(16)]

    @classmethod
    def knobs(cls, i: int) -> dict[str, float]:
        return {"temperature": 0.7 + 0.05 * (i % 3), "guidance": (0.3, 0.5, 0.9)[i % 3], "penalty": 1.2, "min_p": 0.05, "top_p": 0.9}

    @classmethod
    def common_token(cls) -> int:
        """The token that first comes up at the most different times; it will be the end."""
        cls.t3.hp.stop_speech_token = 8000
        first: dict[int, set[int]] = {}
        for row in Speech(cls.t3, [cls.row(i) for i in range(16)], cls.turbo, lambda _: None).speak():
            tokens = row.tokens.tolist()
            for token in set(tokens):
                first.setdefault(token, set()).add(tokens.index(token))
        return max(first, key=lambda token: (len(first[token] - {0, 1, 2}), token))

    @classmethod
    def row(cls, i: int) -> Any:
        text = torch.nn.functional.pad(torch.nn.functional.pad(cls.texts[i][0], (1, 0), value=255), (0, 1), value=0)
        with torch.inference_mode():
            prompt, blank = prompts(cls.t3, make_cond(cls.t3, False, 0.3 + 0.1 * (i % 4)), text, False)
        return Row(prompt, 100 + i, cap(i), blank=blank, **cls.knobs(i))

    @classmethod
    def published(cls, i: int) -> list[int]:
        knobs = cls.knobs(i)
        text = torch.nn.functional.pad(torch.nn.functional.pad(cls.texts[i], (1, 0), value=255), (0, 1), value=0)
        with mock.patch("torch.multinomial", FromDraws(100 + i)):
            tokens = cls.t3.inference(t3_cond=make_cond(cls.t3, False, 0.3 + 0.1 * (i % 4)), text_tokens=torch.cat([text, text]),
                                      max_new_tokens=cap(i), temperature=knobs["temperature"], cfg_weight=knobs["guidance"],
                                      repetition_penalty=knobs["penalty"], min_p=knobs["min_p"], top_p=knobs["top_p"])
        return tokens[0].tolist()

    def spoken(self, order: list[int]) -> dict[int, list[int]]:
        rows = Speech(self.t3, [self.row(i) for i in order], self.turbo, lambda _: None).speak()
        stop = [self.t3.hp.stop_speech_token]
        return {i: row.tokens.tolist() + (stop if row.ended else []) for i, row in zip(order, rows)}

    def test_batches_equal_the_published_code_one_by_one(self) -> None:
        for size in (2, 5, 16):
            for at in range(0, 16, size):
                order = list(range(16))[at:at + size]
                for i, tokens in self.spoken(order).items():
                    self.assertEqual(tokens, self.alone[i], f"text {i} in a batch of {size}")

    def test_the_order_does_not_matter(self) -> None:
        self.assertEqual(self.spoken([7, 3, 15, 0, 9, 12, 4, 1]), {i: self.alone[i] for i in (7, 3, 15, 0, 9, 12, 4, 1)})

    def test_heads_computed_once_for_all_texts_of_a_voice(self) -> None:
        """Each third row has none, so that rows have heads of different lengths."""
        model, heads = Model(self.t3, self.turbo), {}
        with torch.inference_mode():
            rows = [self.row(i) for i in range(16)]
            for i, row in enumerate(rows):
                exaggeration = 0 if self.turbo else 0.3 + 0.1 * (i % 4)
                head = self.t3.prepare_conditioning(make_cond(self.t3, self.turbo, exaggeration))[0]
                if i % 3 == 2:
                    continue
                if exaggeration not in heads:
                    heads[exaggeration] = make_head(model, head)
                row.head, row.prompt = heads[exaggeration], row.prompt[len(head):]
                row.blank = None if row.blank is None else row.blank[len(head):]
        self.assertEqual(len(heads), 1 if self.turbo else 4)
        stop = [self.t3.hp.stop_speech_token]
        for order in (range(16), [0, 1, 3, 4], [6, 2]):
            for i, spoken in zip(order, Speech(self.t3, [rows[i] for i in order], self.turbo, lambda _: None).speak()):
                self.assertEqual(spoken.tokens.tolist() + (stop if spoken.ended else []), self.alone[i], f"text {i} of {list(order)}")

    def test_rows_end_at_different_times(self) -> None:
        lengths = {len(tokens) for tokens in self.alone}
        self.assertGreater(len(lengths), 3, lengths)
        self.assertTrue(any(tokens[-1] == self.t3.hp.stop_speech_token for tokens in self.alone))


@unittest.skipIf(MISSING, MISSING)
class Turbo(Regular):
    turbo = True

    @classmethod
    def knobs(cls, i: int) -> dict[str, float]:
        return {"temperature": 0.7 + 0.05 * (i % 3), "penalty": 1.2, "top_p": 0.9, "top_k": 50 + i}

    @classmethod
    def row(cls, i: int) -> Any:
        with torch.inference_mode():
            prompt, _ = prompts(cls.t3, make_cond(cls.t3, True, 0), cls.texts[i][0], True)
        return Row(prompt, 100 + i, cap(i), **cls.knobs(i))

    @classmethod
    def published(cls, i: int) -> list[int]:
        knobs = cls.knobs(i)
        with mock.patch("torch.multinomial", FromDraws(100 + i)):
            tokens = cls.t3.inference_turbo(make_cond(cls.t3, True, 0), cls.texts[i], temperature=knobs["temperature"],
                                            top_k=int(knobs["top_k"]), top_p=knobs["top_p"], repetition_penalty=knobs["penalty"],
                                            max_gen_len=cap(i) - 1)[0].tolist()
        # the published code drops the end token
        return tokens + ([cls.t3.hp.stop_speech_token] if len(tokens) < cap(i) else [])


class OneRow:
    """What the published code draws for one text, from that row's own generator: the flow's noise (of which Turbo draws the part
    behind the prompt by itself), the phases, the noise of the harmonics."""

    def __init__(self, seed: int, mel_frames: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.draw = torch.randn  # before it is replaced
        self.flow = torch.randn(80, mel_frames, generator=self.generator)

    def randn(self, *shape: int, **_: Any) -> Any:
        return self.flow[None, :, -shape[-1]:].clone()

    def randn_like(self, like: Any) -> Any:
        if like.size(1) == 80:
            return self.flow[None].clone()
        return self.draw(like.shape, generator=self.generator)

    def sample(self, sample_shape: tuple[int, ...]) -> Any:
        return (2 * torch.rand(sample_shape, generator=self.generator) - 1) * torch.pi


@unittest.skipIf(MISSING, MISSING)
class RegularSound(unittest.TestCase):
    meanflow = False

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(5)
        cls.s3gen = S3Gen(meanflow=cls.meanflow).eval()
        cls.voice = {"prompt_token": torch.randint(0, 6000, (1, 20)), "prompt_token_len": torch.tensor([20]),
                     "prompt_feat": torch.randn(1, 40, 80), "prompt_feat_len": None, "embedding": torch.randn(1, 192)}
        cls.tokens = [torch.randint(0, 6561, (n,)) for n in (31, 9, 22, 14, 27)]
        cls.alone = [cls.published(i) for i in range(5)]

    @classmethod
    def published(cls, i: int) -> Any:
        tokens = chatterbox_sound.with_silence(cls.tokens[i])
        draws = OneRow(200 + i, 2 * (20 + tokens.size(0)))
        with mock.patch("torch.randn_like", draws.randn_like), mock.patch("torch.randn", draws.randn), \
                mock.patch("chatterbox.models.s3gen.hifigan.Uniform", lambda low, high: draws):
            wave, _ = cls.s3gen.inference(speech_tokens=tokens, ref_dict=dict(cls.voice), n_cfm_timesteps=2)
        return wave[0, :960 * cls.tokens[i].size(0)]

    def far(self, order: list[int]) -> float:
        waves = Sound(self.s3gen, 2).waves([self.tokens[i] for i in order], self.voice, [200 + i for i in order])
        return max(float((wave - self.alone[i]).abs().max()) if wave.shape == self.alone[i].shape else 9.0 for i, wave in zip(order, waves))

    def test_batches_equal_the_published_code_one_by_one(self) -> None:
        self.assertGreater(min(float(wave.abs().max()) for wave in self.alone), 0.01)
        for order in ([0, 1], [0, 1, 2, 3, 4], [3, 1], [4]):
            self.assertLess(self.far(order), 1e-5, order)

    def test_an_estimator_in_bfloat16_says_the_same(self) -> None:
        voice, rows = self.voice, [chatterbox_sound.with_silence(tokens) for tokens in self.tokens[:2]]
        exact, half = (Sound(self.s3gen, 2, half=half).mels(rows, voice, [torch.Generator().manual_seed(i) for i in range(2)])
                       for half in (False, True))
        self.assertEqual((half.dtype, half.shape), (exact.dtype, exact.shape))
        apart = float((half - exact).norm() / exact.norm())
        self.assertTrue(0 < apart < 0.02, apart)
        again = Sound(self.s3gen, 2, half=True).mels(rows[:1], voice, [torch.Generator().manual_seed(0)])
        self.assertLess(float((again[0] - half[0, :, :again.size(2)]).norm() / again.norm()), 0.02)


@unittest.skipIf(MISSING, MISSING)
class TurboSound(RegularSound):
    meanflow = True


class Said:
    """In place of the wire: keeps what would be said."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def say(self, **line: Any) -> None:
        self.lines.append(line)


def make_engine(folder: str) -> Any:
    """The engine with small random models on the processor; where a row reaches its cap, it has ended."""
    from burst_device import Cpu
    from engine_chatterbox import Chatterbox

    class Twin(Chatterbox):
        def make_device(self) -> Any:
            self.where, self.number = "cpu", torch.float32
            return Cpu()

        def build(self) -> Any:
            tokenizer = types.SimpleNamespace(text_to_tokens=lambda text: torch.tensor([[1 + ord(c) % 250 for c in text]]))
            cond = make_cond(self.t3, False, 0.5)
            gen = {"prompt_token": torch.randint(0, 6000, (1, 20)), "prompt_feat": torch.randn(1, 40, 80), "embedding": torch.randn(1, 192)}
            return types.SimpleNamespace(t3=self.t3, s3gen=S3Gen().eval(), tokenizer=tokenizer, sr=24000, prepare_conditionals=open,
                                         conds=types.SimpleNamespace(t3=cond, gen=gen),
                                         watermarker=perth.PerthImplicitWatermarker())

        def cap(self, task: Any) -> int:
            return 3 + len(task.text) // 3

        def judge(self, spoken: Any, cap: int) -> Any:
            return super().judge(types.SimpleNamespace(tokens=spoken.tokens, ended=True), cap)

    engine = Twin()
    engine.t3 = make_t3(False)
    engine.make_device()
    with mock.patch.dict(os.environ, {"BURST_ENV": folder}):
        engine.load()
    engine.sound.steps = 1
    return engine


@unittest.skipIf(MISSING, MISSING)
class WholeEngine(unittest.TestCase):
    def test_files_of_a_batch_and_of_each_alone(self) -> None:
        from burst_device import Cpu
        from burst_render import Renderer

        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            engine, said = make_engine(folder), Said()
            renderer = Renderer(engine, Cpu(), said, folder, 16)
            texts = ["A first line to be spoken.", "Short.", "And a third one, which is the longest of them all."]
            tasks = [{"id": f"s{i}", "file": f"s{i}.wav", "text": text, "seed": 40 + i, "options": {"cfg_weight": 0 if i == 1 else 0.5}}
                     for i, text in enumerate(texts)]
            renderer.render({"batch": "b1", "segments": tasks})
            self.assertEqual([line.get("done") for line in said.lines][-1], True, said.lines)
            together = [self.samples(folder, i) for i in range(3)]
            for i, task in enumerate(tasks):
                renderer.render({"batch": "b2", "segments": [task]})
                alone = self.samples(folder, i)
                self.assertEqual(len(alone), len(together[i]))
                # the watermark's net rounds: a step or two of 16 bits
                self.assertLessEqual(max(abs(a - b) for a, b in zip(alone, together[i])), 3, texts[i])
            self.assertEqual(len(together[1]) % 960, 0)
            self.assertEqual(list(engine.heads), [("", 0.5)], "one for all texts of a voice")
            renderer.render({"batch": "b3", "segments": [{"id": "v", "file": "v.wav", "text": "x", "voice": "anna"},
                                                         {"id": "f", "file": "f.wav", "text": "x", "voice_file": "none.wav"}]})
            errors = {line["segment"]: line["error"] for line in said.lines if line.get("ok") is False}
            self.assertEqual(errors["v"], "voice 'anna': chatterbox takes voices from files alone")
            self.assertIn("the voice sample none.wav cannot be used", errors["f"])

    def test_writers_mark_at_once(self) -> None:
        """What one thread marks does not depend on what others mark meanwhile."""
        import numpy

        with tempfile.TemporaryDirectory() as folder:
            engine = make_engine(folder)
        waves = [0.1 * torch.randn(24000 + 960 * i, generator=torch.Generator().manual_seed(i)) for i in range(6)]
        alone = [engine.finish(None, wave) for wave in waves]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for once, wave in zip(alone, pool.map(lambda wave: engine.finish(None, wave), waves)):
                self.assertTrue(numpy.array_equal(once, wave))

    def samples(self, folder: str, i: int) -> Any:
        with wave.open(f"{folder}/s{i}.wav") as f:
            return array.array("h", f.readframes(f.getnframes()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
