"""Qwen3-TTS' language model for a whole batch: prompts in, codes of sound out, 16 a frame, 12.5 frames a second.

The published loop renders a batch until its last row ends, draws for all rows from one generator and has one limit for all. Here each
row draws from its own generator, has its own limit and settings, and leaves the batch when it ends. Prompts are padded on the left, so
that all rows write the same slot of the cache. A mask hides the padding, and positions count real steps. The operations on logits and
their order are as published.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from qwen3_blocks import Blocks, Cache, causal

FRAMES_MOST = 2048      # of one row; all random numbers are drawn at once, so that they do not depend on how many are used
LEAST_FRAMES = 2        # as published: a row cannot end earlier
MARKS = 1024            # the last tokens of the first code book are control tokens; only the end token may be chosen


@dataclass
class Row:
    prompt: Tensor      # [steps, width]: text, speaker, and with a transcript the sample's codes
    trail: Tensor       # [steps, width]: text that is not in the prompt, added to the first frames one by one
    seed: int
    cap: int            # most frames
    temperature: float = 0.9
    top_k: int = 50     # 0: all
    top_p: float = 1.0
    penalty: float = 1.05
    sub_temperature: float = 0.9   # of the frame's other codes
    sub_top_k: int = 50
    sub_top_p: float = 1.0


@dataclass
class Spoken:
    codes: Tensor       # [frames, code books]
    ended: bool         # by an end token, before its cap
    broken: bool = False  # its logits were NaN


class Talk:
    """One running batch. PAD: added to a frame behind the end of its row's trail."""

    def __init__(self, talker: Any, rows: Sequence[Row], pad: Tensor, progress: Callable[[str], None], reserve: int = 0) -> None:
        """reserve: least number of cache slots, however short the rows are."""
        self.talker, self.predictor, self.rows, self.progress = talker, talker.code_predictor, rows, progress
        self.blocks, self.sub_blocks = Blocks(talker.model), Blocks(self.predictor.model)
        self.device, self.dtype = talker.codec_head.weight.device, talker.codec_head.weight.dtype
        self.end, self.books = talker.config.codec_eos_token_id, talker.config.num_code_groups
        self.reserve = reserve
        self.live = list(range(len(rows)))
        self.frames: list[tuple[list[int], Tensor]] = []  # (rows, their codes)
        self.spoken = [0] * len(rows)
        self.ended, self.broken = [False] * len(rows), [False] * len(rows)
        self.draws = torch.stack([torch.rand(FRAMES_MOST + 1, self.books, generator=torch.Generator().manual_seed(r.seed)) for r in rows])
        self.draws = self.draws[:, :max(r.cap for r in rows) + 1].to(self.device)
        self.knobs = {name: torch.tensor([[float(getattr(r, name))] for r in rows], device=self.device)
                      for name in ("temperature", "top_k", "top_p", "penalty", "sub_temperature", "sub_top_k", "sub_top_p")}
        self.limits = {of: self.limits_of([getattr(r, of + "top_k") for r in rows], [getattr(r, of + "top_p") for r in rows])
                       for of in ("", "sub_")}
        words = talker.codec_head.out_features
        self.said = torch.zeros(len(rows), words, dtype=torch.bool, device=self.device)
        self.never = torch.arange(words, device=self.device) >= words - MARKS
        self.never[self.end] = False
        most = max(r.trail.size(0) for r in rows)
        self.trails = torch.stack([torch.cat([r.trail.to(pad), pad.expand(most - r.trail.size(0), -1)]) for r in rows])
        self.pad = pad

    @staticmethod
    def limits_of(top_k: list[int], top_p: list[float]) -> tuple[int, bool]:
        return (0 if 0 in top_k else max(top_k)), min(top_p) < 1

    def keep(self, places: list[int]) -> None:
        """Keeps the live rows at these places."""
        at = torch.tensor(places, dtype=torch.long, device=self.device)
        self.live = [self.live[i] for i in places]
        for name in ("said", "draws", "trails", "lengths", "seen"):
            setattr(self, name, getattr(self, name)[at])
        self.knobs = {name: values[at] for name, values in self.knobs.items()}
        self.cache.keep(at)
        self.sub_cache.keep(at)

    # ---- the talker ----

    def start(self) -> Tensor:
        """Computes the prompts. Returns the hidden states of their last steps."""
        prompts = [r.prompt.to(self.device, self.dtype) for r in self.rows]
        longest = max(p.size(0) for p in prompts)
        slots = max(self.reserve, longest + max(r.cap for r in self.rows))
        x = torch.stack([F.pad(p, (0, 0, longest - p.size(0), 0)) for p in prompts])
        self.lengths = torch.tensor([p.size(0) for p in prompts], device=self.device)
        self.seen = torch.ones(len(prompts), slots, dtype=torch.bool, device=self.device)
        self.seen[:, :longest] = torch.arange(longest, device=self.device) >= (longest - self.lengths)[:, None]
        self.cache = Cache(self.blocks.layers, len(prompts), slots, x)
        self.sub_cache = Cache(self.sub_blocks.layers, len(prompts), self.books, x)
        self.sub_angles = self.angles_of(self.predictor.model, torch.arange(self.books, device=self.device)[None], x)
        self.sub_mask = causal(2, 2, self.device)[None, None]
        positions = (torch.arange(longest, device=self.device) - (longest - self.lengths)[:, None]).clamp(min=0)
        # a padded step sees itself: an empty mask would give NaN, which spreads
        mask = self.seen[:, None, None, :longest] & causal(longest, longest, self.device)
        mask = mask | torch.eye(longest, dtype=torch.bool, device=self.device)
        return self.blocks.forward(x, self.angles(positions, x), self.cache, mask)[:, -1:]

    def angles(self, positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """One of the three axes: they differ only for pictures."""
        cos, sin = self.talker.model.rotary_emb(like, positions.expand(3, *positions.shape))
        return cos[0].unsqueeze(1), sin[0].unsqueeze(1)

    @staticmethod
    def angles_of(model: Any, positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = model.rotary_emb(like, positions)
        return cos.unsqueeze(1), sin.unsqueeze(1)

    def step(self, x: Tensor, frame: int) -> Tensor:
        mask = self.seen[:, None, None, :self.cache.used + 1]
        return self.blocks.forward(x, self.angles((self.lengths + frame)[:, None], x), self.cache, mask)

    def first_codes(self, hidden: Tensor, frame: int) -> tuple[Tensor, list[list[int]]]:
        """The first code of each live row; on the host, the code and whether its logits were NaN."""
        logits = self.talker.codec_head(hidden[:, -1]).float()
        broken = logits.isnan().any(-1)
        logits = penalise(logits, self.knobs["penalty"], self.said).masked_fill(self.never, -torch.inf)
        if frame < LEAST_FRAMES:
            logits[:, self.end] = -torch.inf
        codes = draw(cut(logits, self.knobs, "", *self.limits[""]), self.draws[:, frame, 0])
        return codes, torch.stack([codes, broken.long()], 1).tolist()

    # ---- a frame's other codes ----

    def other_codes(self, hidden: Tensor, first: Tensor, frame: int) -> tuple[Tensor, Tensor]:
        """All codes of the frame [rows, books], and the sum of their embeddings."""
        predictor, cache = self.predictor, self.sub_cache
        own = self.talker.get_input_embeddings()(first)[:, None]
        codes, total, x = [first], own, torch.cat([hidden, own], 1)
        cache.used = 0
        for book in range(1, self.books):
            at = slice(cache.used, cache.used + x.size(1))
            angles = tuple(t[:, :, at] for t in self.sub_angles)
            h = self.sub_blocks.forward(predictor.small_to_mtp_projection(x), angles, cache, self.sub_mask if book == 1 else None)
            logits = cut(predictor.lm_head[book - 1](h[:, -1]).float(), self.knobs, "sub_", *self.limits["sub_"])
            codes.append(draw(logits, self.draws[:, frame, book]))
            x = predictor.get_input_embeddings()[book - 1](codes[-1])[:, None]
            total = total + x
        return torch.stack(codes, 1), total

    # ---- the whole loop ----

    def judge(self, told: list[list[int]]) -> list[int]:
        """Places of the live rows that have a further frame: they have not ended and are below their caps."""
        going = []
        for place, (row, (code, broken)) in enumerate(zip(self.live, told)):
            self.ended[row], self.broken[row] = code == self.end and not broken, bool(broken)
            if not self.ended[row] and not broken and self.spoken[row] < self.rows[row].cap:
                going.append(place)
        return going

    def frame(self, hidden: Tensor, first: Tensor, frame: int) -> Tensor:
        """Computes the rest of the frame of the live rows. Returns the input of the talker's next step."""
        codes, x = self.other_codes(hidden, first, frame)
        self.frames.append((self.live[:], codes))
        for row in self.live:
            self.spoken[row] += 1
        self.said[torch.arange(len(self.live), device=self.device), first] = True
        return x + (self.trails[:, frame:frame + 1] if frame < self.trails.size(1) else self.pad)

    @torch.inference_mode()
    def speak(self) -> list[Spoken]:
        hidden = self.start()
        for frame in range(max(row.cap for row in self.rows) + 1):
            first, told = self.first_codes(hidden, frame)
            going = self.judge(told)
            if not going:
                break
            if len(going) < len(self.live):
                at = torch.tensor(going, dtype=torch.long, device=self.device)
                self.keep(going)
                first, hidden = first[at], hidden[at]
            x = self.frame(hidden, first, frame)
            self.progress(f"speech: {frame} frames, {len(self.live)} of {len(self.rows)} rows")
            hidden = self.step(x, frame)
        return self.collect()

    def collect(self) -> list[Spoken]:
        codes: list[list[Tensor]] = [[] for _ in self.rows]
        for rows, frame in self.frames:
            for row, code in zip(rows, frame):
                codes[row].append(code)
        empty = torch.zeros(0, self.books, dtype=torch.long, device=self.device)
        return [Spoken(torch.stack(c) if c else empty, ended, broken) for c, ended, broken in zip(codes, self.ended, self.broken)]


# ---- operations on logits [rows, tokens]; a knob is [rows, 1] ----

def penalise(logits: Tensor, penalty: Tensor, said: Tensor) -> Tensor:
    return torch.where(said, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def cut(logits: Tensor, knobs: dict[str, Tensor], of: str, most_k: int, nucleus: bool) -> Tensor:
    """Temperature, top k, top p. OF: "" or "sub_", the names of the knobs. MOST_K: the largest top k, 0 where a row keeps all
    tokens; NUCLEUS: some top p is below 1. Both are known on the host, which saves needless sorts."""
    logits = logits / knobs[of + "temperature"]
    k = knobs[of + "top_k"].long()
    best = logits.topk(min(most_k or logits.size(-1), logits.size(-1))).values
    least = best.gather(1, (k - 1).clamp(0, best.size(-1) - 1))
    logits = logits.masked_fill((logits < least) & (k > 0), -torch.inf)
    if not nucleus:
        return logits
    ordered, order = torch.sort(logits, -1)
    rare = ordered.softmax(-1).cumsum(-1) <= 1 - knobs[of + "top_p"]
    rare[:, -1:] = False
    return logits.masked_fill(rare.scatter(1, order, rare), -torch.inf)


def draw(logits: Tensor, chance: Tensor) -> Tensor:
    """Each row's token, chosen from its distribution by its own random number."""
    reached = torch.softmax(logits, -1).cumsum(-1)
    return torch.searchsorted(reached, chance[:, None] * reached[:, -1:], right=True).clamp(max=logits.size(-1) - 1)[:, 0]
