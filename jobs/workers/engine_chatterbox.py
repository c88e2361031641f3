"""Chatterbox and Chatterbox-Turbo (resemble-ai/chatterbox, package chatterbox-tts): engine_chatterbox.py [turbo].

The published classes with their weights, in batches of our own (chatterbox_t3.py, chatterbox_sound.py). A task's "voice_file" names
its voice; without one the model's own voice speaks. Each output has the makers' watermark.
"""
from __future__ import annotations

import os
from typing import Any, Optional, Sequence

import burst_graphs
from burst_device import Device, in_bfloat16, kind_of
from burst_engine import Bad, BadTask, CannotRun, Engine, Option, Task, weights_folder
from burst_graphs import CudaTape, Graphs, Tape
from chatterbox_weights import Weights, fill

TOKENS_A_SECOND = 25
CHARS_A_SECOND = 15.0
CAP_MOST = 1000            # speech tokens; the published limit: 40 s
WORDS_LAST = 6561          # speech tokens from here on are control tokens
LONGEST_PROMPT = 420       # conditioning and a text of 280 characters; Turbo's conditioning alone has 376
LONGEST_SPEECH = 840       # cap of such a text
HEADS = 4                  # voices whose heads are cached: 36 MiB each with Turbo

REGULAR = {"exaggeration": Option(0, 2, 0.5), "cfg_weight": Option(0, 2, 0.5), "temperature": Option(0.01, 5, 0.8),
           "repetition_penalty": Option(1, 10, 1.2), "min_p": Option(0, 1, 0.05), "top_p": Option(0, 1, 1.0)}
TURBO = {"temperature": Option(0.01, 5, 0.8), "repetition_penalty": Option(1, 10, 1.2), "top_p": Option(0, 1, 0.95),
         "top_k": Option(0, 6563, 1000, whole=True)}


class Chatterbox(Engine):
    packages = ("chatterbox-tts", "torch", "transformers")
    wave_budget = 16000.0  # mel frames in one call
    wave_batch = 32
    warm_up_texts = ("This is a first short sentence.", "And here is a second one, which takes a little longer.")

    def __init__(self, kind: str = "regular") -> None:
        self.turbo = kind == "turbo"
        self.name = "chatterbox-turbo" if self.turbo else "chatterbox"
        self.options = TURBO if self.turbo else REGULAR
        self.voices: dict[str, Any] = {}
        self.heads: dict[tuple[str, float], Any] = {}

    def make_device(self) -> Device:
        import torch

        self.where, self.number, device = in_bfloat16(torch)
        return device

    def begin(self) -> None:
        self.folder = weights_folder()
        self.files = Weights(self.folder, self.turbo)

    def load(self) -> None:
        with self.phase("import"):
            import perth
            import chatterbox.models.s3gen  # noqa: F401
            import chatterbox.models.t3  # noqa: F401

        if perth.PerthImplicitWatermarker is None:
            raise CannotRun("the watermarker (resemble-perth) could not be imported: it needs the package setuptools below 81")
        with self.phase("build"):
            self.model = self.build()
            self.set_up()

    def build(self) -> Any:
        """The published model, but not by from_local(), which draws random weights first and reads one page after the other."""
        t3, s3gen, ve = self.files.models()
        with self.phase("read"):
            tensors = self.files.tensors()
        fill(t3, s3gen, ve, tensors, self.turbo, self.where, self.number)
        return self.publish(t3, s3gen, ve)

    def publish(self, t3: Any, s3gen: Any, ve: Any) -> Any:
        voice = os.path.join(self.folder, "conds.pt")
        if self.turbo:
            from chatterbox.tts_turbo import ChatterboxTurboTTS as Model, Conditionals
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(self.folder)
            tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        else:
            from chatterbox.models.tokenizers import EnTokenizer
            from chatterbox.tts import ChatterboxTTS as Model, Conditionals

            tokenizer = EnTokenizer(os.path.join(self.folder, "tokenizer.json"))
        conds = Conditionals.load(voice, map_location=self.where).to(self.where) if os.path.exists(voice) else None
        return Model(t3, s3gen, ve, tokenizer, self.where, conds=conds)

    def set_up(self) -> None:
        from chatterbox_sound import Sound

        self.sound = Sound(self.model.s3gen, 2 if self.turbo else 10, half=self.where == "cuda" and not os.environ.get("BURST_FULL_PRECISION"))
        self.sample_rate = self.model.sr
        self.voices[""] = self.model.conds
        self.loop = self.make_loop()

    # ---- the loop of the language model ----

    def make_tape(self) -> Optional[Tape]:
        """Returns None if steps are not recorded here."""
        import torch

        return CudaTape(torch) if self.where == "cuda" and burst_graphs.wanted() else None

    def make_loop(self) -> Any:
        from chatterbox_loop import Loop, RecordedLoop

        tape = self.make_tape()
        if tape is None:
            return Loop(self.model.t3, self.turbo)
        loop = RecordedLoop(self.model.t3, self.turbo, Graphs(tape), LONGEST_PROMPT + LONGEST_SPEECH)
        with burst_graphs.first_time(" ".join([self.name, *map(str, self.facts())])) as may_record:
            if may_record:
                self.prove(loop)
            else:
                loop.graphs.off = True
        return loop

    def facts(self) -> list[str]:
        """Version and card that decide whether steps can be recorded."""
        import torch

        return [torch.__version__, torch.cuda.get_device_name(0) if self.where == "cuda" else self.where]

    def prove(self, loop: Any) -> None:
        """Renders a batch of two and checks the first recording against its step."""
        failed = False
        try:
            self.speak(self.longest_rows(2), loop)
            loop.record(2)
        except Exception as error:
            failed = kind_of(error) == "memory"
            if not failed:
                raise
        if failed:  # outside `except`: the traceback holds tensors
            loop.release()
            loop.graphs.turn_off("no memory is left for them")

    def speak(self, rows: Sequence[Any], loop: Any, reserve: int = 0) -> list[Any]:
        from chatterbox_t3 import Speech

        return Speech(self.model.t3, rows, self.turbo, self.progress, reserve=reserve, loop=loop).speak()

    def longest_rows(self, b: int) -> list[Any]:
        """B rows with the longest prompts, which speak two tokens."""
        import torch
        from chatterbox_t3 import Row

        with torch.inference_mode():
            prompt = torch.zeros(LONGEST_PROMPT, self.model.t3.dim, device=self.where, dtype=self.number)
        return [Row(prompt, i, 2, blank=None if self.turbo else prompt, guidance=0.0 if self.turbo else 0.5) for i in range(b)]

    def held_gib(self) -> float:
        return self.loop.held_gib()

    def expect(self, b: int) -> None:
        self.loop.expect(b)

    def release(self) -> None:
        self.heads.clear()
        self.loop.release()

    # ---- voices ----

    def group(self, task: Task) -> str:
        return os.path.basename(task.voice_file or "")

    def check(self, task: Task) -> None:
        if task.voice and not task.voice_file:
            raise BadTask(f"voice {task.voice!r}: {self.name} takes voices from files alone")
        self.voice(self.group(task))

    def voice(self, name: str) -> Any:
        """Prepares a voice once: that takes as long as a short sentence."""
        if name not in self.voices:
            try:
                self.voices[name] = self.prepare(os.path.join(os.environ.get("BURST_KIT", "."), name))
            except (OSError, ValueError, AssertionError, EOFError) as error:
                raise BadTask(f"the voice sample {name} cannot be used: {error or type(error).__name__}") from error
        if self.voices[name] is None:
            raise BadTask(f"this copy of {self.name} has no voice of its own: name one")
        return self.voices[name]

    def prepare(self, path: str) -> Any:
        import torch

        with torch.inference_mode():
            self.model.prepare_conditionals(path)
        return self.model.conds

    def head(self, task: Task) -> Any:
        """The head of a voice: the model's state before the text, computed once for all texts."""
        exaggeration = self.value(task, "exaggeration") if "exaggeration" in self.options else 0.0
        key = self.group(task), exaggeration
        if key not in self.heads:
            while len(self.heads) >= HEADS:
                del self.heads[next(iter(self.heads))]
            self.heads[key] = self.make_head(self.voice(key[0]).t3, exaggeration)
        return self.heads[key]

    def make_head(self, known: Any, exaggeration: float) -> Any:
        import torch
        from chatterbox.models.t3.modules.cond_enc import T3Cond
        from chatterbox_t3 import make_head

        cond = T3Cond(speaker_emb=known.speaker_emb.to(self.where, self.number),
                      cond_prompt_speech_tokens=known.cond_prompt_speech_tokens.to(self.where),
                      emotion_adv=exaggeration * torch.ones(1, 1, 1, device=self.where, dtype=self.number))
        return make_head(self.loop.model, self.model.t3.prepare_conditioning(cond)[0])

    # ---- text to speech tokens ----

    def value(self, task: Task, name: str) -> float:
        return task.options.get(name, self.options[name].usual)

    def text_tokens(self, text: str) -> Any:
        from torch.nn import functional as F

        if self.turbo:
            from chatterbox.tts_turbo import punc_norm

            return self.model.tokenizer(punc_norm(text), return_tensors="pt", truncation=True).input_ids[0].to(self.where)
        from chatterbox.tts import punc_norm

        hp = self.model.t3.hp
        tokens = self.model.tokenizer.text_to_tokens(punc_norm(text))[0].to(self.where)
        return F.pad(F.pad(tokens, (1, 0), value=hp.start_text_token), (0, 1), value=hp.stop_text_token)

    def cap(self, task: Task) -> int:
        """Limits a row, so that one which never ends does not delay its batch."""
        return min(CAP_MOST, int(1.8 * len(task.text) / CHARS_A_SECOND * TOKENS_A_SECOND) + 50)

    def row(self, task: Task) -> Any:
        from chatterbox_t3 import Row, text_prompts

        prompt, blank = text_prompts(self.model.t3, self.text_tokens(task.text), self.turbo)
        knobs = {"temperature": self.value(task, "temperature"), "top_p": self.value(task, "top_p"),
                 "penalty": self.value(task, "repetition_penalty")}
        if self.turbo:
            knobs["top_k"] = int(self.value(task, "top_k"))
        else:
            knobs.update(min_p=self.value(task, "min_p"), guidance=self.value(task, "cfg_weight"))
        return Row(prompt, task.seed, self.cap(task), blank=blank, head=self.head(task), **knobs)

    def tokens(self, tasks: Sequence[Task]) -> Sequence[Any]:
        import torch

        with torch.inference_mode():
            rows = [self.row(task) for task in tasks]
            return [self.judge(s, row.cap) for s, row in zip(self.speak(rows, self.loop), rows)]

    def judge(self, spoken: Any, cap: int) -> Any:
        words = spoken.tokens[spoken.tokens < WORDS_LAST]
        if not spoken.ended:
            return Bad(f"the speech did not end within {cap / TOKENS_A_SECOND:.1f} s")
        return words if len(words) else Bad("no speech came out")

    # ---- speech tokens to sound ----

    def wave_cost(self, task: Task, tokens: Any) -> float:
        return 2.0 * (len(tokens) + self.voice(self.group(task)).gen["prompt_token"].size(1))

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        return self.sound.waves(tokens, self.voice(self.group(tasks[0])).gen, [task.seed for task in tasks])

    def finish(self, task: Task, wave: Any) -> Any:
        """The writers add the watermark in parallel, since it keeps no state between files. It takes a core 14 ms for each second of
        sound; one thread would limit a fast card to 70 times real time."""
        import torch

        with torch.inference_mode():
            return self.model.watermarker.apply_watermark(wave.float().cpu().numpy(), sample_rate=self.sample_rate)

    def rehearse(self, b: int) -> None:
        """Computes two tokens in a cache of the longest batch, then the sound of the longest rows."""
        import torch

        voice = next((v for v in self.voices.values() if v is not None), None)
        self.speak(self.longest_rows(b), self.loop, reserve=LONGEST_PROMPT + LONGEST_SPEECH)
        self.loop.record(b)
        if voice is not None:
            speech = [torch.zeros(LONGEST_SPEECH // 2, dtype=torch.long)] * max(1, min(b, int(self.wave_budget / LONGEST_SPEECH)))
            self.sound.waves(speech, voice.gen, range(len(speech)))


def make(kind: Optional[str] = None) -> Chatterbox:
    return Chatterbox(kind or "regular")


ENGINE = make
