"""The two transformers of Qwen3-TTS, layer by layer with the published modules' weights and a cache of fixed size: the talker computes
a frame's first code, the code predictor the others."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional as F


class Cache:
    """Keys and values of all layers: [layers, rows, heads, slots, head_dim]. Call keep() to drop rows."""

    def __init__(self, layers: Any, rows: int, slots: int, like: Tensor) -> None:
        at = layers[0].self_attn
        shape = (len(layers), rows, at.k_proj.out_features // at.head_dim, slots, at.head_dim)
        self.keys, self.values, self.used = like.new_empty(shape), like.new_empty(shape), 0

    def keep(self, rows: Tensor) -> None:
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]

    def add(self, layer: int, k: Tensor, v: Tensor, last: int) -> tuple[Tensor, Tensor]:
        self.keys[layer, :, :, self.used:last], self.values[layer, :, :, self.used:last] = k, v
        return self.keys[layer, :, :, :last], self.values[layer, :, :, :last]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.size(-1) // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], scale: float) -> Tensor:
    """Several heads of q share one of k and v. They become further queries of that head, so that nothing is copied. A mask is
    [rows or 1, 1, steps, slots]."""
    rows, heads, steps, width = q.shape
    groups = heads // k.size(1)
    if mask is not None and steps > 1:
        mask = mask.repeat(1, 1, groups, 1)
    out = F.scaled_dot_product_attention(q.reshape(rows, k.size(1), groups * steps, width), k, v, mask, scale=scale)
    return out.view(rows, heads, steps, width)


class Blocks:
    def __init__(self, model: Any) -> None:
        self.model, self.layers = model, model.layers
        self.first = self.layers[0].self_attn
        if any(layer.self_attn.sliding_window for layer in self.layers):
            raise ValueError("this copy of the model attends in windows, which published ones do not")

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], cache: Cache, mask: Optional[Tensor]) -> Tensor:
        """x: [rows, steps, width]. Adds keys and values to the cache's next slots. Returns the last hidden states."""
        last = cache.used + x.size(1)
        for i, layer in enumerate(self.layers):
            h, at = layer.input_layernorm(x), layer.self_attn
            shape = (*h.shape[:2], -1, at.head_dim)
            q = rotate(at.q_norm(at.q_proj(h).view(shape)).transpose(1, 2), *angles)
            k = rotate(at.k_norm(at.k_proj(h).view(shape)).transpose(1, 2), *angles)
            k, v = cache.add(i, k, at.v_proj(h).view(shape).transpose(1, 2), last)
            heard = attend(q, k, v, mask, at.scaling).transpose(1, 2).reshape(*h.shape[:2], -1)
            x = x + at.o_proj(heard)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        cache.used = last
        return self.model.norm(x)


def causal(steps: int, slots: int, device: Any) -> Tensor:
    return torch.ones(steps, slots, dtype=torch.bool, device=device).tril(slots - steps)
