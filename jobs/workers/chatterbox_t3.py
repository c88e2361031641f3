"""Chatterbox's language model for a whole batch: text in, speech tokens out.

The published loop renders one text. Here prompts are padded on the left, so that all rows write the same slot of one static cache. A
mask hides the padding, and positions count real tokens. The part before each text of a voice, its head, is computed once for all
texts; a row is head, padding, text, speech. Each row draws from its own generator, and a row that ends leaves the batch. The
operations on logits and their order are as published.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from chatterbox_loop import Loop
from chatterbox_slots import DRAWS, KNOBS, Model, Slots


@dataclass(eq=False)
class Head:
    """Keys and values [layers, heads, tokens, head_dim] of the first tokens."""
    keys: Tensor
    values: Tensor

    def __len__(self) -> int:
        return self.keys.size(2)


@dataclass
class Row:
    prompt: Tensor                       # [tokens, width]: conditioning, text, start; without the head
    seed: int
    cap: int                             # most tokens
    blank: Optional[Tensor] = None       # the same without the text's embedding, for guidance
    guidance: float = 0.0
    temperature: float = 0.8
    top_p: float = 1.0
    min_p: float = 0.0
    top_k: int = 0
    penalty: float = 1.2
    head: Optional[Head] = None


def prompts(t3: Any, cond: Any, text: Tensor, turbo: bool) -> tuple[Tensor, Optional[Tensor]]:
    """The prompt before the speech of one text, [tokens, width], and the same without the text (None for Turbo)."""
    head = t3.prepare_conditioning(cond)[0]
    words, blank = text_prompts(t3, text, turbo)
    return torch.cat([head, words]), None if blank is None else torch.cat([head, blank])


def text_prompts(t3: Any, text: Tensor, turbo: bool) -> tuple[Tensor, Optional[Tensor]]:
    """The prompt after the conditioning. The published code embeds the start token twice for the first model, as in its training, and
    once for Turbo. text: [tokens], with its start and end."""
    start = torch.full((1, 1), t3.hp.start_speech_token, device=text.device)
    words = t3.text_emb(text)
    if turbo:
        return torch.cat([words, t3.speech_emb(start)[0]]), None
    places = t3.text_pos_emb(text[None])
    begin = t3.speech_emb(start)[0] + t3.speech_pos_emb.get_fixed_embedding(0)[0]
    return torch.cat([words + places, begin, begin]), torch.cat([places, begin, begin])


@torch.inference_mode()
def make_head(model: Model, x: Tensor) -> Head:
    """X: [tokens, width]."""
    keys, values = [], []

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys.append(k[0])
        values.append(v[0])
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    with model.kernels():
        model.blocks.forward(x[None].to(model.device, model.dtype), torch.arange(x.size(0), device=model.device)[None], attend)
    return Head(torch.stack(keys), torch.stack(values))


@dataclass
class Spoken:
    tokens: Tensor   # without the end token
    ended: bool      # by an end token, before its cap


class Speech:
    """One running batch."""

    def __init__(self, t3: Any, rows: Sequence[Row], turbo: bool, progress: Callable[[str], None], reserve: int = 0,
                 loop: Optional[Loop] = None) -> None:
        """reserve: least number of slots, however short the rows are."""
        self.rows, self.progress, self.reserve = rows, progress, reserve
        self.loop = loop or Loop(t3, turbo)
        self.model, self.stop, self.start = self.loop.model, t3.hp.stop_speech_token, t3.hp.start_speech_token
        self.wide = 2 if any(row.guidance for row in rows) else 1
        self.tokens: list[list[int]] = [[] for _ in rows]
        self.ended = [False] * len(rows)
        self.live: dict[int, int] = {i: i for i in range(len(rows))}  # place -> row
        self.places = self.loop.places(len(rows))
        self.done = self.read = 0   # steps computed; steps whose tokens were read

    # ---- the prompts ----

    def lay_out(self) -> tuple[Tensor, Tensor]:
        """Pads prompts on the left. Returns them and their lengths. With guidance, each one's blank twin follows it."""
        prompts = []
        for row in self.rows:
            prompts += [row.prompt, row.prompt if row.blank is None else row.blank][:self.wide]
        longest = max(p.size(0) for p in prompts)
        x = torch.stack([F.pad(p, (0, 0, longest - p.size(0), 0)) for p in prompts]).to(self.model.device, self.model.dtype)
        return x, torch.tensor([p.size(0) for p in prompts], device=self.model.device)

    def begin(self) -> None:
        """Puts heads and prompts into the slots, and computes the first tokens."""
        x, lengths = self.lay_out()
        rows, steps, where = x.size(0), x.size(1), x.device
        heads = max(len(row.head or ()) for row in self.rows)
        used = heads + steps
        s = self.slots = self.loop.slots(self.places, self.wide, max(self.reserve, used + max(row.cap for row in self.rows)))
        before = self.set_heads(s)
        positions = torch.arange(steps, device=where) - (steps - lengths)[:, None]
        s.seen[:rows, heads:used] = positions >= 0
        s.positions[:rows] = before + lengths
        self.set_rows(s)
        causal = torch.ones(steps, used, dtype=torch.bool, device=where).tril(heads)
        # a padded position sees itself: an empty mask would give NaN, which spreads
        mask = s.seen[:rows, None, None, :used] & causal | causal.triu(heads)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = s.keys[layer, :rows, :, :used], s.values[layer, :rows, :, :used]
            keys[:, :, heads:] = k
            values[:, :, heads:] = v
            return F.scaled_dot_product_attention(q, keys, values, mask)

        self.model.choose(s, len(self.rows), self.wide, self.model.logits(x, positions.clamp(min=0) + before[:, None], attend))
        s.at.fill_(used)
        if self.model.turbo:  # from here on the published penalty covers only spoken tokens
            s.said[:len(self.rows), self.start] = s.token[:len(self.rows)] == self.start
        self.used, self.done = used, 1

    def set_heads(self, s: Slots) -> Tensor:
        """Puts each head into the first slots of its rows. Returns how many slots each row uses."""
        before = torch.zeros(len(self.rows) * self.wide, dtype=torch.long, device=self.model.device)
        s.seen[:len(before), 0] = False
        for head in {id(row.head): row.head for row in self.rows if row.head}.values():
            places = [place * self.wide + i for place, row in enumerate(self.rows) if row.head is head for i in range(self.wide)]
            at, n = torch.tensor(places, device=before.device), len(head)
            before[at] = n
            s.seen[at, :n] = True
            s.keys[:, at, :, :n] = head.keys[:, None]
            s.values[:, at, :, :n] = head.values[:, None]
        return before

    def set_rows(self, s: Slots) -> None:
        n = len(self.rows)
        draws = torch.stack([torch.rand(DRAWS, generator=torch.Generator().manual_seed(row.seed)) for row in self.rows])
        s.draws[:n] = draws.to(s.draws.device)
        s.knobs[:, :n, 0] = torch.tensor([[float(getattr(row, name)) for row in self.rows] for name in KNOBS], device=s.knobs.device)
        s.said[:n, self.start] = True  # the published penalty counts the start token

    # ---- live rows ----

    def due(self) -> bool:
        """Whether to check which rows have ended. A row at its cap needs no check."""
        return self.done - self.read >= self.loop.check_steps or self.done >= min(self.rows[row].cap for row in self.live.values())

    def look(self) -> None:
        """Reads the tokens since the last check, and removes ended rows from the live ones."""
        found = self.slots.chosen[:self.places, self.read:self.done].tolist()
        self.read = self.done
        for place, row in list(self.live.items()):
            if self.has_ended(row, found[place]):
                del self.live[place]

    def has_ended(self, row: int, found: Sequence[int]) -> bool:
        for token in found:
            if token == self.stop:
                self.ended[row] = True
                return True
            self.tokens[row].append(token)
            if len(self.tokens[row]) == self.rows[row].cap:
                return True
        return False

    def close_up(self) -> None:
        """Reduces the places if the live rows fit into fewer."""
        places = self.loop.places(len(self.live))
        if places >= self.places:
            return
        outside = [place for place in self.live if place >= places]
        free = [place for place in range(places) if place not in self.live][:len(outside)]
        if outside:
            self.slots.move(outside, free, self.wide, self.used)
        for place, to in zip(outside, free):
            self.live[to] = self.live.pop(place)
        self.places = places

    @torch.inference_mode()
    def speak(self) -> list[Spoken]:
        with self.model.kernels():
            self.run()
        return [Spoken(torch.tensor(tokens, dtype=torch.long), ended) for tokens, ended in zip(self.tokens, self.ended)]

    def run(self) -> None:
        self.begin()
        while True:
            if self.due():
                self.look()
                if not self.live:
                    break
                self.close_up()
            self.progress(f"speech: {self.done} tokens, {len(self.live)} of {len(self.rows)} rows")
            self.used += 1
            self.loop.step(self.slots, self.places, self.wide, self.loop.window(self.used))
            self.done += 1
