"""Reads Chatterbox's weights into the published classes: in the background from the worker's start, and without the random weights
that from_local() draws first."""
from __future__ import annotations

import os
from typing import Any

from burst_engine import CannotRun
from burst_read import Reader, assign, bare
from chatterbox_prepare import FILES, READY

TURBO_TEXT_TOKENS, TURBO_SPEECH_TOKENS, TURBO_PROMPT = 50276, 6563, 375


def language_file(folder: str, turbo: bool) -> str:
    """The prepared file if it exists, else the published one."""
    ready = os.path.join(folder, READY)
    return ready if os.path.exists(ready) else os.path.join(folder, FILES[turbo][0])


class Weights:
    """Starts reading when constructed, before heavy imports."""

    def __init__(self, folder: str, turbo: bool) -> None:
        if not os.path.isdir(folder):
            raise CannotRun(f"there are no weights in {folder}: the engine's set-up is incomplete")
        self.folder, self.turbo = folder, turbo
        self.paths = [language_file(folder, turbo), os.path.join(folder, FILES[turbo][1]), os.path.join(folder, "ve.safetensors")]
        missing = [os.path.basename(path) for path in self.paths if not os.path.exists(path)]
        if missing:
            raise CannotRun(f"{folder} lacks {', '.join(missing)}: the engine's set-up is incomplete")
        self.reader = Reader(self.paths)

    def models(self) -> tuple[Any, Any, Any]:
        """The published classes without their weights: language model, sound, voice encoder."""
        from chatterbox.models.s3gen import S3Gen
        from chatterbox.models.t3 import T3
        from chatterbox.models.voice_encoder import VoiceEncoder

        with bare():
            t3 = T3(turbo_settings()) if self.turbo else T3()
            return t3, S3Gen(meanflow=True) if self.turbo else S3Gen(), VoiceEncoder()

    def tensors(self) -> list[dict[str, Any]]:
        """The tensors of each file; waits until it is read."""
        found = [self.reader.tensors(path) for path in self.paths]
        self.reader.close()
        return found


def turbo_settings() -> Any:
    """The settings of the published from_local()."""
    from chatterbox.models.t3.modules.t3_config import T3Config

    settings = T3Config(text_tokens_dict_size=TURBO_TEXT_TOKENS)
    settings.llama_config_name, settings.input_pos_emb = "GPT2_medium", None
    settings.speech_tokens_dict_size, settings.speech_cond_prompt_len = TURBO_SPEECH_TOKENS, TURBO_PROMPT
    settings.use_perceiver_resampler = settings.emotion_adv = False
    return settings


def fill(t3: Any, s3gen: Any, ve: Any, tensors: list[dict[str, Any]], turbo: bool, where: str, number: Any) -> None:
    """Gives the models their weights. Buffers keep their type: positions in bfloat16 would be imprecise in long texts."""
    if turbo:
        del t3.tfmr.wte  # unused: the published code drops it after loading
    assign(t3, {name: tensor.to(number) if tensor.is_floating_point() else tensor for name, tensor in tensors[0].items()})
    assign(s3gen, tensors[1])
    assign(ve, tensors[2])
    for model in (t3, s3gen, ve):
        model.to(where)
