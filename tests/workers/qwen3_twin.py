"""A Qwen3-TTS of the published classes with random weights and any shape, saved as a folder that the published code loads."""
from __future__ import annotations

import json
import os
from typing import Any

import torch
from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Config
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model

SPEAKERS = ("serena", "vivian", "uncle_fu", "ryan", "aiden", "ono_anna", "sohee", "eric", "dylan")
LANGUAGES = ("chinese", "english", "german", "french", "russian", "portuguese", "spanish", "italian", "japanese", "korean")
ADDED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "assistant", "user", "<tts_pad>", "<tts_bos>", "<tts_eos>")
MARKS = 1024

TINY = {"codes": 32, "books": 4, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head": 8, "inner": 48,
        "sub_width": 24, "sub_layers": 2, "text_width": 40, "latent": 16, "decoder": 32, "sharp": 6.0}


def byte_letters() -> list[str]:
    from transformers.models.qwen2.tokenization_qwen2 import bytes_to_unicode

    return [letter for _, letter in sorted(bytes_to_unicode().items())]


def write_json(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)


def write_tokenizer(folder: str) -> None:
    """Each byte is a token; the words of the chat's frame are, too."""
    letters = byte_letters()
    write_json(f"{folder}/vocab.json", {letter: i for i, letter in enumerate(letters)})
    with open(f"{folder}/merges.txt", "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n")
    added = {str(len(letters) + i): {"content": word, "special": word.startswith("<"), "lstrip": False, "rstrip": False, "normalized": False,
                                     "single_word": False} for i, word in enumerate(ADDED)}
    write_json(f"{folder}/tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added,
                                                   "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None,
                                                   "model_max_length": 131072})
    write_json(f"{folder}/preprocessor_config.json", {"processor_class": "Qwen3TTSProcessor"})


def configuration(kind: str, size: str, shape: dict[str, Any]) -> Qwen3TTSConfig:
    words = shape["codes"] + MARKS
    mark = iter(range(shape["codes"] + 20, words))
    ids = {f"codec_{name}_id": next(mark) for name in ("pad", "bos", "think", "nothink", "think_bos", "think_eos")}
    first = len(byte_letters())
    at = {word: first + i for i, word in enumerate(ADDED)}
    predictor = {"vocab_size": shape["codes"], "hidden_size": shape["sub_width"], "intermediate_size": shape["inner"],
                 "num_hidden_layers": shape["sub_layers"], "num_attention_heads": shape["heads"], "num_key_value_heads": shape["kv_heads"],
                 "head_dim": shape["head"], "num_code_groups": shape["books"]}
    third = shape["head"] // 6
    talker = {"vocab_size": words, "hidden_size": shape["width"], "intermediate_size": shape["inner"], "num_hidden_layers": shape["layers"],
              "num_attention_heads": shape["heads"], "num_key_value_heads": shape["kv_heads"], "head_dim": shape["head"], "hidden_act": "silu",
              "rope_scaling": {"mrope_section": [shape["head"] // 2 - 2 * third, third, third], "interleaved": True, "rope_type": "default"},
              "num_code_groups": shape["books"], "text_hidden_size": shape["text_width"], "text_vocab_size": first + len(ADDED),
              "codec_eos_token_id": shape["codes"] + 10, **ids, "pad_token_id": None,
              "spk_id": {name: next(mark) for name in SPEAKERS} if kind == "custom_voice" else {},
              "spk_is_dialect": {name: False for name in SPEAKERS},
              "codec_language_id": {name: next(mark) for name in LANGUAGES}, "code_predictor_config": predictor}
    return Qwen3TTSConfig(talker_config=talker, speaker_encoder_config=speaker_encoder(shape), tokenizer_type="qwen3_tts_tokenizer_12hz", tts_model_size=size,
                          tts_model_type=kind, im_start_token_id=at["<|im_start|>"], im_end_token_id=at["<|im_end|>"],
                          tts_pad_token_id=at["<tts_pad>"], tts_bos_token_id=at["<tts_bos>"], tts_eos_token_id=at["<tts_eos>"])


def speaker_encoder(shape: dict[str, Any]) -> dict[str, Any]:
    return {"mel_dim": 128, "enc_dim": shape["width"], "enc_channels": [16, 16, 16, 16, 48], "enc_attention_channels": 8,
            "enc_res2net_scale": 4, "enc_se_channels": 8}


def make_sound(shape: dict[str, Any]) -> Any:
    decoder = {"codebook_size": shape["codes"], "hidden_size": shape["latent"], "latent_dim": shape["latent"], "codebook_dim": shape["latent"],
               "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 2 * shape["latent"],
               "num_hidden_layers": 2, "num_quantizers": shape["books"], "decoder_dim": shape["decoder"]}
    encoder = {"hidden_size": 16, "num_filters": 2, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
               "intermediate_size": 16, "codebook_size": shape["codes"], "codebook_dim": 8, "num_quantizers": shape["books"],
               "vector_quantization_hidden_dimension": 8, "upsample_groups": 16}
    return Qwen3TTSTokenizerV2Model(Qwen3TTSTokenizerV2Config(encoder_config=encoder, decoder_config=decoder,
                                                              encoder_valid_num_quantizers=shape["books"]))


def make_folder(folder: str, kind: str, size: str = "0b6", shape: dict[str, Any] = TINY) -> None:
    """kind: "custom_voice" or "base"."""
    torch.manual_seed(7)
    os.makedirs(f"{folder}/speech_tokenizer")
    model = Qwen3TTSForConditionalGeneration(configuration(kind, size, shape))
    with torch.no_grad():
        for parameter in (model.talker.codec_head.weight, *(head.weight for head in model.talker.code_predictor.lm_head)):
            parameter.mul_(shape["sharp"])
    model.save_pretrained(folder)
    with open(f"{folder}/config.json", encoding="utf-8") as f:
        config = json.load(f)
    config["speaker_encoder_config"] = speaker_encoder(shape)  # its published class does not read what it writes
    write_json(f"{folder}/config.json", config)
    write_json(f"{folder}/generation_config.json", {"do_sample": True, "top_k": 50, "top_p": 1.0, "temperature": 0.9,
                                                    "repetition_penalty": 1.05, "subtalker_dosample": True, "subtalker_top_k": 50,
                                                    "subtalker_top_p": 1.0, "subtalker_temperature": 0.9, "max_new_tokens": 8192})
    write_tokenizer(folder)
    sound = make_sound(shape)
    with torch.no_grad():
        for values in sound.decoder.parameters():
            if values.dim() > 1:
                values.normal_(std=0.75 * (values.size(1) * (values.size(2) if values.dim() > 2 else 1)) ** -0.5)
    sound.save_pretrained(f"{folder}/speech_tokenizer")
    write_json(f"{folder}/speech_tokenizer/preprocessor_config.json",
               {"feature_extractor_type": "EncodecFeatureExtractor", "feature_size": 1, "sampling_rate": 24000, "padding_side": "right",
                "padding_value": 0.0, "return_attention_mask": True})
    write_json(f"{folder}/weights.json", {"revision": "0123456789abcdef", "sha256": {}})
