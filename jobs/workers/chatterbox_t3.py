"""Chatterbox's language model for a whole batch: text in, speech tokens out.

The published loop renders one text. Here the prompts are padded on the left, so that all rows write the same slot of one static
cache; a mask hides the padding, and positions count real tokens. Each row draws from its own generator, and rows that have ended
leave the batch. What is done to the logits, and in which order, is as published.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from chatterbox_blocks import Gpt2, Llama

DRAWS = 1000        # of one row, all at once: the first ones do not depend on how many are used


@dataclass
class Row:
    prompt: Tensor                       # [tokens, width]: conditioning, text, start
    seed: int
    cap: int                             # most tokens
    blank: Optional[Tensor] = None       # the same without the text's embedding, for guidance
    guidance: float = 0.0
    temperature: float = 0.8
    top_p: float = 1.0
    min_p: float = 0.0
    top_k: int = 0
    penalty: float = 1.2


def prompts(t3: Any, cond: Any, text: Tensor, turbo: bool) -> tuple[Tensor, Optional[Tensor]]:
    """What stands before the speech of one text, [tokens, width], and the same without the text (None for Turbo). The published
    code embeds the start token twice, which the first model has learned; Turbo once. text: [tokens], with its start and end."""
    start = torch.full((1, 1), t3.hp.start_speech_token, device=text.device)
    head, words = t3.prepare_conditioning(cond)[0], t3.text_emb(text)
    if turbo:
        return torch.cat([head, words, t3.speech_emb(start)[0]]), None
    places = t3.text_pos_emb(text[None])
    begin = t3.speech_emb(start)[0] + t3.speech_pos_emb.get_fixed_embedding(0)[0]
    return torch.cat([head, words + places, begin, begin]), torch.cat([head, places, begin, begin])


@dataclass
class Spoken:
    tokens: Tensor   # without the end token
    ended: bool      # by itself, before its cap


@dataclass
class Cache:
    """Keys and values of all layers: [layers, rows, heads, slots, head_dim]."""
    keys: Tensor
    values: Tensor
    seen: Tensor     # [rows, slots]: slots that hold real tokens
    used: int = 0

    @staticmethod
    def empty(blocks: Any, rows: int, slots: int, like: Tensor) -> "Cache":
        shape = (blocks.layers, rows, blocks.heads, slots, blocks.head_dim)
        return Cache(like.new_empty(shape), like.new_empty(shape), torch.zeros(rows, slots, dtype=torch.bool, device=like.device))

    def keep(self, rows: Tensor) -> None:
        self.keys, self.values, self.seen = self.keys[:, rows], self.values[:, rows], self.seen[rows]


class Speech:
    """One batch under way."""

    def __init__(self, t3: Any, rows: Sequence[Row], turbo: bool, progress: Callable[[str], None], reserve: int = 0) -> None:
        """reserve: at least so many slots of the cache, however short the rows are."""
        self.t3, self.rows, self.turbo, self.progress = t3, rows, turbo, progress
        self.blocks = (Gpt2 if turbo else Llama)(t3.tfmr)
        self.device, self.dtype = t3.speech_head.weight.device, t3.speech_head.weight.dtype
        self.start, self.stop = t3.hp.start_speech_token, t3.hp.stop_speech_token
        self.reserve = reserve
        self.guided = any(row.guidance for row in rows)
        self.live = list(range(len(rows)))
        self.tokens: list[list[int]] = [[] for _ in rows]
        self.ended = [False] * len(rows)
        self.draws = torch.stack([torch.rand(DRAWS, generator=torch.Generator().manual_seed(row.seed)) for row in rows]).to(self.device)
        self.knobs = {name: torch.tensor([float(getattr(row, name)) for row in rows], device=self.device)[:, None]
                      for name in ("guidance", "temperature", "top_p", "min_p", "top_k", "penalty")}
        self.said = torch.zeros(len(rows), t3.speech_head.out_features, dtype=torch.bool, device=self.device)
        self.said[:, self.start] = True  # the published penalty counts the start token

    def lay_out(self) -> tuple[Tensor, Tensor, Cache]:
        """Prompts padded on the left; with guidance their blank twins in a second half."""
        prompts = [row.prompt for row in self.rows]
        if self.guided:
            prompts += [row.prompt if row.blank is None else row.blank for row in self.rows]
        longest = max(p.size(0) for p in prompts)
        x = torch.stack([F.pad(p, (0, 0, longest - p.size(0), 0)) for p in prompts]).to(self.device, self.dtype)
        lengths = torch.tensor([p.size(0) for p in prompts], device=self.device)
        cache = Cache.empty(self.blocks, len(prompts), max(self.reserve, longest + max(row.cap for row in self.rows)), x)
        cache.seen[:, :longest] = torch.arange(longest, device=self.device) >= (longest - lengths)[:, None]
        return x, lengths, cache

    def run(self, cache: Cache, x: Tensor, positions: Tensor) -> Tensor:
        """The blocks over x, whose keys and values go into the next slots. Returns the logits after the last."""
        first, steps = cache.used, x.size(1)
        cache.used += steps
        cache.seen[:, first:cache.used] |= steps == 1
        mask = cache.seen[:, None, None, :cache.used]
        if steps > 1:
            causal = torch.ones(steps, cache.used, dtype=torch.bool, device=self.device).tril(first)
            # a padded position sees itself: nothing at all would give NaN, which spreads
            mask = mask & causal | torch.eye(steps, cache.used, dtype=torch.bool, device=self.device)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            cache.keys[layer, :, :, first:cache.used] = k
            cache.values[layer, :, :, first:cache.used] = v
            return F.scaled_dot_product_attention(q, cache.keys[layer, :, :, :cache.used], cache.values[layer, :, :, :cache.used], mask)

        return self.t3.speech_head(self.blocks.forward(x, positions, attend)[:, -1]).float()

    def choose(self, logits: Tensor, step: int) -> Tensor:
        """The next token of each live row."""
        live = torch.tensor(self.live, device=self.device)
        knobs = {name: values[live] for name, values in self.knobs.items()}
        if self.guided:
            half = len(self.live)
            logits = logits[:half] + knobs["guidance"] * (logits[:half] - logits[half:])
        steps = (cut_top_k, cut_top_p, penalise) if self.turbo else (penalise, cut_min_p, cut_top_p)
        if self.turbo:
            logits = logits / knobs["temperature"]
        for work in steps:
            logits = work(logits, knobs, self.said[live])
            if work is penalise and not self.turbo:
                logits = logits / knobs["temperature"]
        reached = torch.softmax(logits, -1).cumsum(-1)
        return torch.searchsorted(reached, self.draws[live, step, None] * reached[:, -1:], right=True).clamp(max=logits.size(-1) - 1)[:, 0]

    def take(self, chosen: Tensor, step: int) -> None:
        """Notes the tokens; what has ended is taken out of the live rows."""
        live, self.live = self.live, []
        if self.turbo and step == 0:
            self.said[:] = False  # from here on the published penalty sees what was spoken alone
        self.said[torch.tensor(live, device=self.device), chosen] = True
        for row, token in zip(live, chosen.tolist()):
            if token == self.stop:
                self.ended[row] = True
                continue
            self.tokens[row].append(token)
            if len(self.tokens[row]) < self.rows[row].cap:
                self.live.append(row)

    def embed(self, chosen: Tensor, step: int) -> Tensor:
        x = self.t3.speech_emb(chosen[:, None])
        return x if self.turbo else x + self.t3.speech_pos_emb.get_fixed_embedding(step + 1)

    @torch.inference_mode()
    def speak(self) -> list[Spoken]:
        x, lengths, cache = self.lay_out()
        positions = (torch.arange(x.size(1), device=self.device) - (x.size(1) - lengths)[:, None]).clamp(min=0)
        logits = self.run(cache, x, positions)
        at = self.live[:]  # which row is where in the cache; its first half when guided
        for step in range(max(row.cap for row in self.rows)):
            chosen = self.choose(logits, step)
            was, before = self.live[:], len(at)
            self.take(chosen, step)
            if not self.live:
                break
            self.progress(f"speech: {step} tokens, {len(self.live)} of {len(self.rows)} rows")
            place = {row: i for i, row in enumerate(was)}
            chosen = chosen[torch.tensor([place[row] for row in self.live], device=self.device)]
            if len(self.live) < before:
                rows = [at.index(row) for row in self.live]
                both = rows + [before + i for i in rows] if self.guided else rows
                cache.keep(torch.tensor(both, device=self.device))
                lengths = lengths[torch.tensor(both, device=self.device)]
                at = self.live[:]
            x = self.embed(chosen, step).to(self.dtype)
            logits = self.run(cache, torch.cat([x, x]) if self.guided else x, (lengths + step)[:, None])
        return [Spoken(torch.tensor(tokens, dtype=torch.long), ended) for tokens, ended in zip(self.tokens, self.ended)]


# ---- what is done to logits: [rows, tokens]; a knob is [rows, 1] ----

def penalise(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    return torch.where(said, torch.where(logits < 0, logits * knobs["penalty"], logits / knobs["penalty"]), logits)


def cut_min_p(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    probs = torch.softmax(logits, -1)
    most = probs.amax(-1, keepdim=True)
    return logits.masked_fill((probs < knobs["min_p"] * most) & (probs < most), -torch.inf)


def cut_top_p(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    ordered, order = torch.sort(logits, -1, descending=False)
    cut = ordered.softmax(-1).cumsum(-1) <= 1 - knobs["top_p"]
    cut[:, -1:] = False
    return logits.masked_fill(cut.scatter(1, order, cut), -torch.inf)


def cut_top_k(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    k = knobs["top_k"].long().clamp(0, logits.size(-1))
    ordered = torch.sort(logits, -1, descending=True).values
    least = ordered.gather(1, (k - 1).clamp(min=0))
    return logits.masked_fill((logits < least) & (k > 0), -torch.inf)
