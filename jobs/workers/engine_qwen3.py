"""Qwen3-TTS (QwenLM/Qwen3-TTS, package qwen-tts): engine_qwen3.py [custom|clone] [0.6b|1.7b].

"custom": the nine voices of a CustomVoice model, by name. "clone": a Base model imitates a sample. With the sample's words in a text
file beside it (NAME.wav, NAME.txt) it continues the sample; without them it uses only the speaker's timbre. The published classes
make prompts and sound; the language model's loop is ours (qwen3_talk.py).
"""
from __future__ import annotations

import os
import unicodedata
from types import SimpleNamespace
from typing import Any, Optional, Sequence

from burst_device import Device, in_bfloat16, kind_of
from burst_engine import Bad, BadTask, CannotRun, Choice, Engine, Option, Task, Text, nearest, weights_folder

FRAMES_A_SECOND = 12.5
LETTERS_A_SECOND = 15.0
WIDE_LETTERS = 3.5         # letters that take as long to speak as one ideograph
DECODED_AT_ONCE = 325      # frames; the published decoder splits longer rows
LONGEST_PROMPT = 480       # steps: a text of 280 letters and a sample of 15 s with its words
LONGEST_SPEECH = 512       # frames: the cap of such a text
LANGUAGES = ("auto", "chinese", "english", "japanese", "korean", "german", "french", "russian", "portuguese", "spanish", "italian")

NUMBERS = {"temperature": Option(0.01, 5, 0.9), "top_k": Option(0, 2048, 50, whole=True), "top_p": Option(0.01, 1, 1.0),
           "repetition_penalty": Option(1, 10, 1.05), "subtalker_temperature": Option(0.01, 5, 0.9),
           "subtalker_top_k": Option(0, 2048, 50, whole=True), "subtalker_top_p": Option(0.01, 1, 1.0)}
# Their names in a row of qwen3_talk.py.
ROW_NAMES = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "repetition_penalty": "penalty",
             "subtalker_temperature": "sub_temperature", "subtalker_top_k": "sub_top_k", "subtalker_top_p": "sub_top_p"}


class Captured(Exception):
    """Carries the arguments of the published code's loop."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__("the prompts are made")
        self.given = given


def letters(text: str) -> float:
    """Length of a text, in Latin letters."""
    return sum(WIDE_LETTERS if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in text)


class Qwen3(Engine):
    packages = ("qwen-tts", "torch", "transformers")
    wave_batch = 32
    wave_budget = 1300.0       # frames in one call
    warm_up_texts = ("This is a first short sentence.", "And here is a second one, which takes a little longer.")

    def __init__(self, kind: str = "custom", size: str = "0.6b") -> None:
        self.clones, self.size_name = kind == "clone", size
        self.name = "qwen3" + ("" if size == "0.6b" else f"-{size}") + ("-clone" if self.clones else "")
        self.options = {**NUMBERS, "language": Choice(LANGUAGES, "auto")}
        if not self.clones and size != "0.6b":
            self.options["instruct"] = Text(500)
        self.voices: dict[str, Any] = {}

    # ---- loading ----

    def make_device(self) -> Device:
        import torch

        self.where, self.number, device = in_bfloat16(torch)
        return device

    def load(self) -> None:
        self.folder = weights_folder()
        self.wrapper = self.build()
        self.set_up()

    def build(self) -> Any:
        if not os.path.exists(os.path.join(self.folder, "config.json")):
            raise CannotRun(f"there are no weights in {self.folder}: the engine's set-up is incomplete")
        from qwen_tts import Qwen3TTSModel

        return Qwen3TTSModel.from_pretrained(self.folder, dtype=self.number, device_map=self.where, attn_implementation="sdpa",
                                             local_files_only=True)

    def set_up(self) -> None:
        model = self.wrapper.model
        model.eval().requires_grad_(False)
        wanted = "base" if self.clones else "custom_voice"
        if model.tts_model_type != wanted:
            raise CannotRun(f"the weights in {self.folder} are of kind {model.tts_model_type}; {self.name} needs {wanted}")
        self.sound = model.speech_tokenizer.model
        self.sound.eval().requires_grad_(False)
        self.sample_rate = int(self.sound.get_output_sample_rate())
        self.speakers = sorted(model.get_supported_speakers())
        self.usual = self.wrapper._merge_generate_kwargs()  # the defaults published with the weights
        if not self.clones:
            self.warm_up_voice = "ryan" if "ryan" in self.speakers else self.speakers[0]

    # ---- voices ----

    def check(self, task: Task) -> None:
        if self.clones:
            if task.voice and not task.voice_file:
                raise BadTask(f"voice {task.voice!r}: {self.name} takes voices from files alone")
            self.sample(task)
        elif task.voice_file:
            raise BadTask(f"voice {task.voice!r}: {self.name} has voices of its own alone; a sample needs {self.name}-clone")
        elif (task.voice or self.warm_up_voice).lower() not in self.speakers:
            raise BadTask(f"unknown voice {task.voice!r}{nearest(task.voice, self.speakers)}")
        language = self.value(task, "language").lower()
        if language not in self.wrapper.model.get_supported_languages():
            raise BadTask(f"this copy of {self.name} does not speak {language}")

    def sample(self, task: Task) -> Any:
        """The prompt of a voice's sample, made once. None for the warm-up, which has no sample."""
        name = os.path.basename(task.voice_file or "")
        if not name:
            if task.file:
                raise BadTask(f"{self.name} needs a voice: a sample that it speaks like")
            return None
        if name not in self.voices:
            try:
                self.voices[name] = self.prepare(os.path.join(os.environ.get("BURST_KIT", "."), name))
            except Exception as error:
                if kind_of(error) != "other":
                    raise
                raise BadTask(f"the voice sample {name} cannot be used: {error or type(error).__name__}") from error
        return self.voices[name]

    def prepare(self, path: str) -> Any:
        words = self.transcript(path)
        return self.wrapper.create_voice_clone_prompt(ref_audio=path, ref_text=words, x_vector_only_mode=words is None)[0]

    @staticmethod
    def transcript(path: str) -> Optional[str]:
        try:
            with open(os.path.splitext(path)[0] + ".txt", encoding="utf-8") as f:
                return " ".join(f.read().split()) or None
        except FileNotFoundError:
            return None

    # ---- text to codes ----

    def value(self, task: Task, name: str) -> Any:
        return task.options.get(name, self.options[name].usual)

    def size(self, task: Task) -> float:
        return letters(task.text)

    def cap(self, task: Task) -> int:
        """Limits a row, so that one which never ends does not delay its batch."""
        from qwen3_talk import FRAMES_MOST

        return min(FRAMES_MOST, int(1.8 * letters(task.text) / LETTERS_A_SECOND * FRAMES_A_SECOND) + 25)

    def knobs(self, task: Task) -> dict[str, float]:
        return {row: task.options.get(name, self.usual.get(name, NUMBERS[name].usual)) for name, row in ROW_NAMES.items()}

    def prompts(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """Calls the published functions and stops them where their loop would begin."""
        talker, texts = self.wrapper.model.talker, [task.text for task in tasks]
        languages = [self.value(task, "language") for task in tasks]

        def capture(**given: Any) -> None:
            raise Captured(given)

        talker.generate = capture
        try:
            if self.clones:
                samples = [self.sample(task) or self.nobody() for task in tasks]
                self.wrapper.generate_voice_clone(text=texts, language=languages, voice_clone_prompt=samples)
            else:
                instructions = [task.options.get("instruct", "") for task in tasks]
                self.wrapper.generate_custom_voice(text=texts, language=languages, instruct=instructions,
                                                   speaker=[task.voice or self.warm_up_voice for task in tasks])
        except Captured as captured:
            return captured.given
        finally:
            del talker.generate
        raise RuntimeError("the published code made no prompts")

    def nobody(self) -> Any:
        """A speaker of no timbre, for the warm-up and for rehearsals."""
        import torch

        width = self.wrapper.model.talker.config.hidden_size
        return SimpleNamespace(ref_code=None, ref_spk_embedding=torch.zeros(width, device=self.where, dtype=self.number),
                               x_vector_only_mode=True, icl_mode=False, ref_text=None)

    def rows(self, tasks: Sequence[Task]) -> tuple[list[Any], Any]:
        from qwen3_talk import Row

        given = self.prompts(tasks)
        lengths = given["attention_mask"].sum(-1).tolist()
        rows = [Row(prompt[-length:], trail, task.seed, self.cap(task), **self.knobs(task))
                for task, prompt, trail, length in zip(tasks, given["inputs_embeds"], given["trailing_text_hidden"], lengths)]
        return rows, given["tts_pad_embed"][0]

    def tokens(self, tasks: Sequence[Task]) -> Sequence[Any]:
        import torch
        from qwen3_talk import Talk

        with torch.inference_mode():
            rows, pad = self.rows(tasks)
            spoken = Talk(self.wrapper.model.talker, rows, pad, self.progress).speak()
        return [self.judge(s, row.cap, bool(task.file)) for task, s, row in zip(tasks, spoken, rows)]

    def judge(self, spoken: Any, cap: int, must_end: bool = True) -> Any:
        """The warm-up need not end: a speaker without timbre may speak for long."""
        if spoken.broken:
            return Bad("the model gave values that are no numbers")
        if must_end and not spoken.ended:
            return Bad(f"the speech did not end within {cap / FRAMES_A_SECOND:.1f} s")
        return spoken.codes if len(spoken.codes) else Bad("no speech came out")

    # ---- codes to sound ----

    def before(self, task: Task) -> Any:
        """The sample's codes. The sound is decoded as their continuation, as published."""
        sample = self.sample(task) if self.clones else None
        return None if sample is None else sample.ref_code

    def wave_cost(self, task: Task, tokens: Any) -> float:
        before = self.before(task)
        return float(min(DECODED_AT_ONCE, len(tokens) + (0 if before is None else len(before))))

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        before = [self.before(task) for task in tasks]
        codes = [t if b is None else torch.cat([b.to(t), t]) for b, t in zip(before, tokens)]
        with torch.inference_mode():
            waves = self.sound.decode(pad_sequence(codes, batch_first=True, padding_value=-1).to(self.sound.device), return_dict=True)
        return [w if b is None else w[int(len(b) / len(c) * len(w)):] for w, b, c in zip(waves.audio_values, before, codes)]

    def finish(self, task: Task, wave: Any) -> Any:
        return wave.detach().float().cpu().numpy()

    def rehearse(self, b: int) -> None:
        """Computes two frames in a cache of the longest batch, then the sound of the longest rows."""
        import torch
        from qwen3_talk import Row, Talk

        talker = self.wrapper.model.talker
        with torch.inference_mode():
            prompt = torch.zeros(LONGEST_PROMPT, talker.config.hidden_size, device=self.where, dtype=self.number)
            rows = [Row(prompt, prompt[:1], i, 2) for i in range(b)]
            Talk(talker, rows, prompt[:1], self.progress, reserve=LONGEST_PROMPT + LONGEST_SPEECH).speak()
        n = max(1, min(b, int(self.wave_budget / DECODED_AT_ONCE)))
        with torch.inference_mode():
            self.sound.decode(torch.zeros(n, DECODED_AT_ONCE, talker.config.num_code_groups, dtype=torch.long, device=self.where))


ENGINE = Qwen3
