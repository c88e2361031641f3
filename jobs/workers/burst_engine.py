"""The interface between engine and harness. An engine's file defines a subclass of Engine and names it ENGINE.

A batch goes through two stages: tokens() (the language model; all texts at once) and waves() (the sound; in sub-batches). An
engine of one stage defines only waves(). Both return one value per task, in the order of the tasks. A failed row is Bad("why");
the harness renders it once more, alone and with another seed. waves() may return Spoken(wave, words) to mark the words in the file.
"""
from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence, Union

from burst_audio import Word, pcm16
from burst_device import Cpu, Device
from burst_phases import Phases


class CannotRun(Exception):
    """This engine can never render on this pod. The text says why and what to do."""


class BadTask(Exception):
    """The engine does not support this task's voice, option or seed."""


@dataclass(frozen=True)
class Bad:
    """A row without a usable result."""
    why: str


@dataclass(frozen=True)
class Spoken:
    """A row whose engine knows when its words are heard: its wave, and words of the task's text in order."""
    wave: Any
    words: Sequence[Word]


@dataclass(frozen=True)
class Task:
    id: str
    file: str
    text: str
    voice: Optional[str] = None
    voice_file: Optional[str] = None
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    language: Optional[str] = None  # of the text, for job.check.words; None: unknown, or nothing hears it


@dataclass(frozen=True)
class Option:
    """An option that is a number."""
    least: float
    most: float
    usual: float
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        number = isinstance(value, int if self.whole else (int, float)) and not isinstance(value, bool)
        if not number or not self.least <= value <= self.most:
            kind = "a whole number" if self.whole else "a number"
            raise BadTask(f"option {name} must be {kind} from {self.least:g} to {self.most:g}, not {value!r}")


@dataclass(frozen=True)
class Choice:
    """An option that is one of several words, in any case."""
    words: Sequence[str]
    usual: str

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or value.lower() not in self.words:
            raise BadTask(f"option {name} must be one of its words, not {value!r}{nearest(value, self.words)}")


@dataclass(frozen=True)
class Text:
    """An option that is a text."""
    most: int  # bytes
    usual: str = ""

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value.encode()) > self.most:
            raise BadTask(f"option {name} must be a text of at most {self.most} bytes, not {str(value)[:60]!r}")


class Engine:
    name = ""
    packages: Sequence[str] = ()       # Python distributions that decide the sound; the engine's own first
    folder = ""                        # of the weights; begin() or load() sets it
    sample_rate = 0                    # known once load() has returned
    options: dict[str, Union[Option, Choice, Text]] = {}
    batching = "padded"                # "none": it renders one text at a time
    max_batch = 64                     # most segments of a batch
    wave_batch = 8                     # most rows of one waves() call
    wave_budget = 0.0                  # limit of rows x longest wave_cost() of one call; 0: none
    warm_up_texts = ("This is a first short sentence.", "And this is a second one, which is a little longer than the first.")
    warm_up_voice: Optional[str] = None
    progress: Callable[[str], None] = staticmethod(lambda text: None)  # call it during a long stage
    phase = Phases()                   # set by the harness; load() may time its steps: with self.phase("read"):

    def begin(self) -> None:
        """Called first. Starts threads that read files while Python imports. Must not import heavy modules."""

    def make_device(self) -> Device:
        """Called before load(). Raises CannotRun if the hardware is missing."""
        return Cpu()

    def load(self) -> None:
        """Imports the engine and reads its weights."""

    def weights(self) -> str:
        """The revision or hash of the loaded weights. By default what burst_weights.py left in `folder`."""
        if not self.folder:
            return ""
        try:
            with open(os.path.join(self.folder, "weights.json"), encoding="utf-8") as f:
                return json.load(f)["revision"]
        except (OSError, ValueError, KeyError):
            return ""

    def check(self, task: Task) -> None:
        """Raises BadTask for an unknown voice. Options and seed are checked already."""

    def size(self, task: Task) -> float:
        """Expected length of the result, relative to other tasks."""
        return float(len(task.text))

    def group(self, task: Task) -> str:
        """A waves() call gets tasks of one group only."""
        return ""

    def wave_cost(self, task: Task, tokens: Any) -> float:
        return self.size(task)

    def tokens(self, tasks: Sequence[Task]) -> Sequence[Any]:
        return [None] * len(tasks)

    def waves(self, tasks: Sequence[Task], tokens: Sequence[Any]) -> Sequence[Any]:
        raise NotImplementedError

    def finish(self, task: Task, wave: Any) -> Any:
        """Runs in a writer's thread, beside the GPU: copies the samples to the host and watermarks them."""
        return wave

    def rehearse(self, b: int) -> None:
        """For the probe on a GPU: uses as much memory as the longest batch of b."""

    def held_gib(self) -> float:
        """For the probe: GPU memory that batches need and rehearse() has not allocated."""
        return 0.0

    def expect(self, b: int) -> None:
        """Called before hello: no batch will have more than b segments."""

    def release(self) -> None:
        """Called when memory runs out: drops caches that it can rebuild."""


def sound_of(engine: Engine, task: Task, wave: Any) -> tuple[bytes, Sequence[Word]]:
    """The samples of a row, and its words. Raises BadAudio."""
    spoken = wave if isinstance(wave, Spoken) else Spoken(wave, ())
    return pcm16(engine.finish(task, spoken.wave)), spoken.words


def weights_folder() -> str:
    """The folder that the set-up has filled."""
    return os.path.join(os.environ.get("BURST_ENV", "."), "weights")


def check_options(known: dict[str, Union[Option, Choice, Text]], options: Any) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise BadTask(f"options must be an object, not {options!r}")
    for name, value in options.items():
        if name not in known:
            raise BadTask(f"unknown option {name!r}{nearest(name, known)}")
        known[name].check(name, value)
    return options


def nearest(word: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown word."""
    near = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    if near:
        return f", did you mean {near[0]!r}?"
    return f"; known: {', '.join(sorted(known)[:12]) or 'none'}"


def read_task(raw: Any, engine: Engine) -> Task:
    """Reads a task as the agent sent it. BadTask names the mistake."""
    for key in ("id", "file", "text"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise BadTask(f"{key} must be a text, not {raw.get(key)!r}")
    for key in ("voice", "voice_file", "language"):
        if not isinstance(raw.get(key), (str, type(None))):
            raise BadTask(f"{key} must be a text, not {raw[key]!r}")
    seed = raw.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 63:
        raise BadTask(f"seed must be a whole number from 0, not {seed!r}")
    task = Task(raw["id"], raw["file"], raw["text"], raw.get("voice"), raw.get("voice_file"), seed,
                check_options(engine.options, raw.get("options")), raw.get("language"))
    engine.check(task)
    return task
