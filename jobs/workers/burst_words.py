"""Finds when the words of a text are heard, from the times of its phonemes: aligns words with groups of phonemes.

A phonemizer merges words ("of the"), spells numbers and drops signs, so the two do not correspond one to one. Both sequences are aligned
at least cost; only words with a group of their own are returned.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, Sequence

from burst_audio import Word

STOPS = ",;:.!?…、。，！？；："
STRESS = "ˈˌː"
CLOSING = "\"'”’»)]}」』"
CELLS_MOST = 4_000_000
SKIP, OTHER_STOP = 1.0, 1.5  # costs of a word or group alone, and of two of which only one ends a clause
NUMBER, MORE = 0.2, 0.3      # costs of a number and any group, and of each further group, as numbers are said in many
MERGE = 0.3                  # cost of two words in one group


@dataclass(frozen=True)
class Symbol:
    """A phoneme, a blank or a stop, and its samples."""
    text: str
    begin: int
    end: int


@dataclass
class Item:
    """A word of the text, or a group of phonemes."""
    text: str
    begin: int
    end: int
    stops: bool = False

    def length(self) -> int:
        return len(self.text)


def text_items(text: str) -> Iterator[Item]:
    """Words with anything to speak; begin and end are places in the text."""
    for found in re.finditer(r"\S+", text):
        letters = re.sub(r"[\W_]", "", found[0])
        if letters or re.search(r"[%&+=@$#€£]", found[0]):
            yield Item(letters or found[0], found.start(), found.end(), found[0].rstrip(CLOSING)[-1:] in tuple(STOPS))


def sound_items(symbols: Sequence[Symbol]) -> Iterator[Item]:
    """Groups between blanks, with their samples."""
    group: list[Symbol] = []
    stops = False
    for symbol in [*symbols, Symbol(" ", 0, 0)]:
        if symbol.text.isspace():
            if group:
                yield Item("".join(s.text for s in group), group[0].begin, group[-1].end, stops)
            group, stops = [], False
        elif symbol.text in STOPS:
            stops = True
        elif symbol.text.isalnum() and symbol.text not in STRESS:
            group.append(symbol)


def is_number(word: Item) -> bool:
    return any(c.isdigit() for c in word.text)


def cost(word: Item, group: Item) -> float:
    if is_number(word):
        return NUMBER
    longer = max(word.length(), group.length())
    return abs(word.length() - group.length()) / longer + (OTHER_STOP if word.stops != group.stops else 0)


def merged(first: Item, second: Item) -> Item:
    """Two words that are said as one."""
    return Item(first.text + second.text, first.begin, second.end, second.stops)


def align(words: Sequence[Item], groups: Sequence[Item]) -> list[tuple[int, int]]:
    """Pairs of a word and a group, in order, at least cost. Of two words in one group the first has it."""
    wide = len(groups) + 1
    rows, ways = [[k * SKIP for k in range(wide)]], [bytearray(b"g" * wide)]
    for i, word in enumerate(words):
        row, way = [(i + 1) * SKIP], bytearray(b"w")
        both = merged(words[i - 1], word) if i and not words[i - 1].stops else None
        skip = MORE if is_number(word) else SKIP
        for k, group in enumerate(groups):
            choices = [(row[k] + skip, 0), (rows[i][k] + cost(word, group), 1), (rows[i][k + 1] + SKIP, 2)]
            if both:
                choices.append((rows[i - 1][k] + MERGE + cost(both, group), 3))
            best = min(choices)
            row.append(best[0])
            way += b"gbwm"[best[1]:best[1] + 1]
        rows.append(row)
        ways.append(way)
    pairs, i, k = [], len(words), len(groups)
    while i and k:
        step = ways[i][k:k + 1]
        i, k = i - (2 if step == b"m" else step in b"bw"), k - (step in b"bgm")
        if step in b"bm":
            pairs.append((i, k))
    return pairs[::-1]


def find_words(text: str, symbols: Sequence[Symbol]) -> list[Word]:
    """The words of the text that have a time of their own. Groups without a word belong to the word before them."""
    words, groups = list(text_items(text)), list(sound_items(symbols))
    if not words or not groups or len(words) * len(groups) > CELLS_MOST:
        return []
    pairs = align(words, groups)
    found = []
    for n, (i, k) in enumerate(pairs):
        following = pairs[n + 1][1] if n + 1 < len(pairs) else len(groups)
        last = k
        while last + 1 < following and not groups[last].stops:
            last += 1
        found.append(Word(text[words[i].begin:words[i].end], groups[k].begin, groups[last].end - groups[k].begin))
    return found
