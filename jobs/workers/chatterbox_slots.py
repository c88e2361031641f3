"""The slots of a batch of Chatterbox, and one step over them: from the last token of each row to its next.

A step reads and writes only these tensors and the weights. Each row's place, progress, earlier tokens and random numbers are on the
device. So each step of a batch is the same work at the same addresses, which can be recorded once and replayed (burst_graphs.py).
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from chatterbox_blocks import Attend, Gpt2, Llama

DRAWS = 1000        # random numbers of a row, drawn at once: the first ones do not depend on how many are used
KNOBS = ("guidance", "temperature", "top_p", "min_p", "top_k", "penalty")


class Slots:
    """Slots for several texts. With guidance, a text has two adjacent rows: its own and one without words."""

    def __init__(self, model: "Model", texts: int, wide: int, slots: int) -> None:
        """WIDE: rows of a text, 1 or 2."""
        like, blocks = model.t3.speech_head.weight, model.blocks
        words, rows, where = model.t3.speech_head.out_features, texts * wide, like.device
        self.texts, self.wide, self.slots = texts, wide, slots
        shape = (blocks.layers, rows, blocks.heads, slots, blocks.head_dim)
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)    # zeros, since a mask does not hide NaN
        self.seen = torch.zeros(rows, slots, dtype=torch.bool, device=where)     # slots that hold real tokens
        self.positions = torch.zeros(rows, dtype=torch.long, device=where)       # of the next token
        self.at = torch.zeros(1, dtype=torch.long, device=where)                 # slot that all rows write next
        self.step = torch.zeros(1, dtype=torch.long, device=where)               # step of the last token
        self.token = torch.zeros(texts, dtype=torch.long, device=where)          # the last token
        self.chosen = torch.zeros(texts, DRAWS, dtype=torch.long, device=where)  # all tokens
        self.said = torch.zeros(texts, words, dtype=torch.bool, device=where)
        self.draws = torch.zeros(texts, DRAWS, device=where)
        self.knobs = torch.ones(len(KNOBS), texts, 1, device=where)
        self.logits = torch.zeros(texts, words, device=where)                    # of the last step, before the knobs apply
        self.seen[:, 0] = True  # places without a row see something

    def state(self) -> list[Tensor]:
        """What a step changes, except keys and values: it writes one slot of those and does not read it first."""
        return [self.seen, self.positions, self.at, self.step, self.token, self.chosen, self.said, self.logits]

    def clear(self, rows: int, slots: int) -> None:
        """Clears the first rows and slots: a leftover NaN would spread, since 0 times NaN is NaN."""
        for tensor in (self.keys, self.values):
            tensor[:, :rows, :, :slots] = 0
        for tensor in (self.at, self.step):
            tensor.zero_()
        for tensor in (self.seen, self.positions, self.token, self.chosen, self.said, self.logits):
            tensor[:rows] = 0
        self.knobs.fill_(1)
        self.seen[:rows, 0] = True  # places without a row see something

    def move(self, places: Sequence[int], to: Sequence[int], wide: int, used: int) -> None:
        """Moves live rows to the places of rows that have ended."""
        texts, new_texts = (torch.tensor(p, dtype=torch.long, device=self.at.device) for p in (places, to))
        rows, new_rows = ((p[:, None] * wide + torch.arange(wide, device=p.device)).flatten() for p in (texts, new_texts))
        for tensor in (self.token, self.said, self.draws):
            tensor[new_texts] = tensor[texts]
        self.knobs[:, new_texts] = self.knobs[:, texts]
        for tensor in (self.seen, self.positions):
            tensor[new_rows] = tensor[rows]
        for tensor in (self.keys, self.values):
            for layer in tensor:  # one by one, to use less memory
                layer[new_rows, :, :used] = layer[rows, :, :used]


class Model:
    """The published model: its blocks, its embeddings, and how a token is chosen."""

    def __init__(self, t3: Any, turbo: bool) -> None:
        self.t3, self.turbo = t3, turbo
        self.blocks = (Gpt2 if turbo else Llama)(t3.tfmr)
        self.device, self.dtype = t3.speech_head.weight.device, t3.speech_head.weight.dtype

    def kernels(self) -> Any:
        """A context for all steps, without cuDNN's attention: with a mask it builds a plan for each shape, which cannot be recorded."""
        if self.device.type != "cuda":
            return contextlib.nullcontext()
        return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])

    def logits(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """The logits after the last step of x [rows, steps, width]."""
        return self.t3.speech_head(self.blocks.forward(x, positions, attend)[:, -1]).float()

    def embed(self, token: Tensor, step: Tensor) -> Tensor:
        x = self.t3.speech_emb(token[:, None])
        return (x if self.turbo else x + self.t3.speech_pos_emb.get_fixed_embedding(step + 1)).to(self.dtype)

    def advance(self, s: Slots, texts: int, wide: int, window: int) -> None:
        """Adds a token to the first TEXTS texts. No row may use more than WINDOW slots."""
        rows = texts * wide
        keys, values, seen = s.keys[:, :rows, :, :window], s.values[:, :rows, :, :window], s.seen[:rows, :window]
        seen.index_fill_(1, s.at, True)
        mask = seen[:, None, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys[layer].index_copy_(2, s.at, k)
            values[layer].index_copy_(2, s.at, v)
            return F.scaled_dot_product_attention(q, keys[layer], values[layer], mask)

        x = self.embed(s.token[:texts], s.step)
        if wide > 1:
            x = x[:, None].expand(-1, wide, -1, -1).reshape(rows, 1, x.size(-1))
        logits = self.logits(x, s.positions[:rows, None], attend)
        s.step.add_(1)
        s.at.add_(1)
        s.positions.add_(1)
        self.choose(s, texts, wide, logits)

    def choose(self, s: Slots, texts: int, wide: int, logits: Tensor) -> None:
        """Chooses the token of step S.STEP from the logits of its rows."""
        knobs = dict(zip(KNOBS, s.knobs[:, :texts]))
        if wide > 1:
            logits = logits[::2] + knobs["guidance"] * (logits[::2] - logits[1::2])
        s.logits[:texts].copy_(logits)
        steps: tuple[Callable[..., Tensor], ...] = (cut_top_k, cut_top_p, penalise) if self.turbo else (penalise, cut_min_p, cut_top_p)
        if self.turbo:
            logits = logits / knobs["temperature"]
        for work in steps:
            logits = work(logits, knobs, s.said[:texts])
            if work is penalise and not self.turbo:
                logits = logits / knobs["temperature"]
        token = draw(logits, s.draws[:texts].index_select(1, s.step))
        s.token[:texts].copy_(token[:, 0])
        s.chosen[:texts].index_copy_(1, s.step, token)
        s.said[:texts].scatter_(1, token, True)


# ---- operations on logits [rows, tokens]; a knob is [rows, 1] ----

def penalise(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    return torch.where(said, torch.where(logits < 0, logits * knobs["penalty"], logits / knobs["penalty"]), logits)


def cut_min_p(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    probs = torch.softmax(logits, -1)
    most = probs.amax(-1, keepdim=True)
    return logits.masked_fill((probs < knobs["min_p"] * most) & (probs < most), -torch.inf)


def cut_top_p(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    ordered, order = torch.sort(logits, -1, descending=False)
    cut = ordered.softmax(-1).cumsum(-1) <= 1 - knobs["top_p"]
    cut[:, -1:].fill_(False)  # an assignment would copy from the host
    return logits.masked_fill(cut.scatter(1, order, cut), -torch.inf)


def cut_top_k(logits: Tensor, knobs: dict[str, Tensor], said: Tensor) -> Tensor:
    k = knobs["top_k"].long().clamp(0, logits.size(-1))
    ordered = torch.sort(logits, -1, descending=True).values
    least = ordered.gather(1, (k - 1).clamp(min=0))
    return logits.masked_fill((logits < least) & (k > 0), -torch.inf)


def draw(logits: Tensor, chance: Tensor) -> Tensor:
    """Each row's token [rows, 1], chosen from its distribution by its own random number."""
    reached = torch.softmax(logits, -1).cumsum(-1)
    return torch.searchsorted(reached, chance * reached[:, -1:], right=True).clamp(max=logits.size(-1) - 1)
