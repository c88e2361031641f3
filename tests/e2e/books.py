#!/usr/bin/env python3
"""books.py FOLDER BORDERS - holds what a run made of a book (m4b, subtitles, times of words) against each other.

BORDERS names what lies between its texts: c (chapter), h (heading), s (scene), p (paragraph). Prints a line for each thing that
is wrong: a chapter of the m4b that begins more than 10 ms from its place in the track, a length, a silence that its border does
not explain, a cue that begins more than 0.15 s from its first word.
"""
import json
import re
import subprocess
import sys
import wave

PAUSES = {"c": 2.5, "h": 1.2, "s": 2.0, "p": 0.7}  # seconds, as jobs/README.md says


def ask(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def chapters_of(folder: str) -> list:
    """Begin and title of each, from chapters.txt."""
    text = open(f"{folder}/chapters.txt", encoding="utf-8").read()
    found = re.findall(r"TIMEBASE=1/(\d+)\nSTART=(\d+)\nEND=\d+\ntitle=(.*)", text)
    return [(int(start) / int(base), title) for base, start, title in found]


def silences_of(path: str) -> list:
    said = ask("ffmpeg", "-nostdin", "-i", path, "-af", "silencedetect=n=-45dB:d=0.6", "-f", "null", "-")
    return [float(seconds) for seconds in re.findall(r"silence_duration: ([\d.]+)", said)]


def seconds_of(text: str) -> float:
    hours, minutes, seconds = text.replace(",", ".").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def late_cues(folder: str) -> list:
    words = json.load(open(f"{folder}/joined.words.json", encoding="utf-8"))
    starts = [(c, word["start"]) for word in words for c in letters(word["word"])]
    at, late = 0, []
    for block in open(f"{folder}/joined.srt", encoding="utf-8").read().strip().split("\n\n"):
        lines = block.split("\n")
        begin, text = seconds_of(lines[1].split(" --> ")[0]), letters("".join(lines[2:]))
        if "".join(c for c, _ in starts[at:at + len(text)]) != text:
            return [f"cue {lines[0]} does not show the words that are said"]
        if abs(begin - starts[at][1]) > 0.15:
            late.append(f"cue {lines[0]} begins at {begin}, its first word at {starts[at][1]}")
        at += len(text)
    return late if at == len(starts) else late + ["not all words are shown"]


def main() -> None:
    folder, borders = sys.argv[1:]
    wrong = []
    probed = json.loads(ask("ffprobe", "-v", "error", "-show_chapters", "-show_format", "-of", "json", f"{folder}/joined.m4b"))
    want, got = chapters_of(folder), [(float(c["start_time"]), c["tags"]["title"]) for c in probed["chapters"]]
    if [title for _, title in got] != [title for _, title in want]:
        wrong.append(f"chapters {got}, not {want}")
    wrong += [f"{title} begins at {a}, not at {b}" for (a, title), (b, _) in zip(got, want) if abs(a - b) > 0.01]
    with wave.open(f"{folder}/joined.wav") as track:
        seconds = track.getnframes() / track.getframerate()
    if abs(float(probed["format"]["duration"]) - seconds) > 0.1:
        wrong.append(f"the m4b lasts {probed['format']['duration']} s, the track {seconds} s")
    silent, expected = silences_of(f"{folder}/joined.wav"), [PAUSES[border] for border in borders]
    if len(silent) != len(expected) or any(abs(a - b) > 0.12 for a, b in zip(silent, expected)):
        wrong.append(f"silences {silent}, not {expected}")
    wrong += late_cues(folder)
    print("\n".join(wrong))


if __name__ == "__main__":
    main()
