#!/usr/bin/env python3
"""subtitles.py FOLDER VOICE - holds the subtitles of a folder of espeak's output against what espeak-ng says of its words.

Speaks each text of the manifest once more, as the worker does, and compares each cue's start with the time of its first word. Prints
`cues N late N worst S median S inside N overlap N` (late: off by more than 0.15 s; inside: it ends within a phrase, though a clause ends
before that). -v lists the bad ones.
"""
from __future__ import annotations

import ctypes
import json
import multiprocessing
import re
import sys
import wave

FAR_S = 0.15
ENDS = re.compile(r"[.!?…。！？;:,，、；：—–][\"”“’'»)」』\]]*$")


class Name(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class Event(ctypes.Structure):  # espeak_EVENT of speak_lib.h
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_uint), ("at", ctypes.c_int), ("length", ctypes.c_int), ("ms", ctypes.c_int),
                ("sample", ctypes.c_int), ("user", ctypes.c_void_p), ("name", Name)]


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))
WORD = 1
USUAL = {1: 175, 2: 100, 3: 50, 4: 50, 7: 0}  # rate, volume, pitch, range, gap: as the worker sets them


def words(job: tuple[str, str]) -> tuple[list[tuple[int, float]], int]:
    """Where each word begins in the text, and when; the number of samples. In a process of its own, since speech changes later speech."""
    text, voice = job
    lib = ctypes.CDLL("libespeak-ng.so.1")
    lib.espeak_Initialize(2, 0, None, 1 << 15)
    found: list[tuple[int, float]] = []
    samples = 0

    def on_samples(_: object, count: int, events: object) -> int:
        nonlocal samples
        samples += max(count, 0)
        i = 0
        while events[i].type:
            if events[i].type == WORD:
                found.append((events[i].at - 1, events[i].ms / 1000))
            i += 1
        return 0

    keep = CALLBACK(on_samples)
    lib.espeak_SetSynthCallback(keep)
    if lib.espeak_SetVoiceByName(voice.encode()):
        raise ValueError(f"no voice {voice}")
    for parameter, value in USUAL.items():
        lib.espeak_SetParameter(parameter, value, 0)
    data = text.encode()
    lib.espeak_Synth(data, len(data) + 1, 0, 1, 0, 1 | 0x1000, None, None)
    return found, samples


def samples_of(path: str) -> tuple[bytes, int]:
    with wave.open(path) as f:
        return f.readframes(f.getnframes()), f.getframerate()


def letters_of(folder: str, voice: str) -> list[tuple[str, float]]:
    """Each letter of the track that is shown, and when its word begins."""
    segments = [json.loads(line) for line in open(f"{folder}/manifest.jsonl", encoding="utf-8")]
    with multiprocessing.Pool(1, maxtasksperchild=1) as pool:
        spoken = pool.map(words, [(s.get("spoken", s["text"]), voice) for s in segments], 1)
    track, rate = samples_of(f"{folder}/joined.wav")
    at, letters = 0, []
    for segment, (found, samples) in zip(segments, spoken):
        sound, _ = samples_of(f"{folder}/{segment['file']}")
        if len(sound) != 2 * samples:
            raise SystemExit(f"{segment['file']} has {len(sound) // 2} samples, spoken again {samples}")
        middle = len(sound) // 4 * 2  # the ends may be trimmed
        at = track.index(sound[middle:middle + 2 * rate], at) - middle
        now = at / 2 / rate
        at += middle + 2
        starts: dict[int, float] = {}
        for place, seconds in found:
            starts.setdefault(place, seconds)
        begins = now
        for place, letter in enumerate(segment["text"]):
            begins = now + starts[place] if place in starts else begins
            if not letter.isspace():
                letters.append((letter, begins))
    return letters


def seconds_of(text: str) -> float:
    hours, minutes, seconds = text.replace(",", ".").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def cues_of(folder: str) -> list[tuple[float, float, str]]:
    cues = []
    for block in open(f"{folder}/joined.srt", encoding="utf-8").read().strip().split("\n\n"):
        lines = block.split("\n")
        begin, end = lines[1].split(" --> ")
        cues.append((seconds_of(begin), seconds_of(end), "".join(lines[2:]).replace(" ", "")))
    return cues


def main() -> None:
    verbose = "-v" in sys.argv
    folder, voice = [a for a in sys.argv[1:] if a != "-v"]
    letters, cues = letters_of(folder, voice), cues_of(folder)
    shown = "".join(text for _, _, text in cues)
    said = "".join(letter for letter, _ in letters)
    if shown != said:
        raise SystemExit("the cues do not show the text")
    at, off, inside, overlap = 0, [], 0, 0
    for i, (begin, end, text) in enumerate(cues):
        word = next((k for k, letter in enumerate(text) if letter.isalnum()), 0)  # opening quotes are not heard
        late = begin - letters[at + word][1]
        at += len(text)
        off.append(abs(late))
        is_inside = not ENDS.search(text) and bool(re.search(r"[!?…。！？;:,，、；：]", text[:-1]))
        inside += is_inside
        overlap += i + 1 < len(cues) and end > cues[i + 1][0]
        if verbose and (abs(late) > FAR_S or is_inside):
            print(f"{begin:7.2f} {late:+.2f}{' inside' if is_inside else ''} {text}")
    off.sort()
    print(f"cues {len(cues)} late {sum(o > FAR_S for o in off)} worst {off[-1]:.2f} median {off[len(off) // 2]:.2f} inside {inside} "
          f"overlap {overlap}")


if __name__ == "__main__":
    main()
