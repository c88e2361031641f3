"""The two transformers of Chatterbox, Llama (the first model) and GPT-2 (Turbo), layer by layer with the published modules' weights.
They use our own cache, mask and positions, so that rows of different lengths share a batch."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor

# attend(layer, q, k, v) -> [rows, heads, steps, head_dim]; it stores k and v
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def split_heads(x: Tensor, heads: int) -> Tensor:
    return x.view(x.size(0), x.size(1), heads, -1).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(x.size(0), x.size(2), -1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.size(-1) // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


class Llama:
    def __init__(self, model: Any) -> None:
        self.model, self.layers = model, len(model.layers)
        self.heads = model.config.num_attention_heads
        self.head_dim = model.layers[0].self_attn.head_dim

    def forward(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """x: [rows, steps, width]; positions: [rows, steps], of the real tokens."""
        cos, sin = (t.unsqueeze(1) for t in self.model.rotary_emb(x, position_ids=positions))
        for i, layer in enumerate(self.model.layers):
            h, at = layer.input_layernorm(x), layer.self_attn
            q, k, v = (split_heads(p(h), self.heads) for p in (at.q_proj, at.k_proj, at.v_proj))
            x = x + at.o_proj(join_heads(attend(i, rotate(q, cos, sin), rotate(k, cos, sin), v)))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.model.norm(x)


class Gpt2:
    def __init__(self, model: Any) -> None:
        self.model, self.layers = model, len(model.h)
        self.heads = model.config.num_attention_heads
        self.head_dim = model.config.hidden_size // self.heads

    def forward(self, x: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        x = x + self.model.wpe(positions)
        for i, layer in enumerate(self.model.h):
            q, k, v = (split_heads(t, self.heads) for t in layer.attn.c_attn(layer.ln_1(x)).chunk(3, -1))
            x = x + layer.attn.c_proj(join_heads(attend(i, q, k, v)))
            x = x + layer.mlp(layer.ln_2(x))
        return self.model.ln_f(x)
