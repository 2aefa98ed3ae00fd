"""A decoder read token by token in a plain loop, with caches that a test decides on.

Hooks or masks would hide what a cache holds; here each layer's pairs are a list. Letters: V
vocabulary, n tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb


def read_in_a_plain_loop(
    model: Any, tokens: list[int], drop: Callable[[int, list[Any]], None]
) -> np.ndarray:
    """The logits `[n, V]` after each token.

    Keys are kept without RoPE and turned to their places in the list for every token.

    Args:
        model: a decoder with Llama's layers, not attached.
        tokens: n ids.
        drop: called with a layer's index and its pairs after each new one; deletes what goes.
    """
    caches: list[list[Any]] = [[] for _ in model.model.layers]
    rows = []
    for token in tokens:
        hidden = model.model.embed_tokens(torch.tensor([[token]]))
        for index, (layer, kept) in enumerate(zip(model.model.layers, caches, strict=True)):
            attention, states = layer.self_attn, layer.input_layernorm(hidden)
            shape = (1, 1, -1, attention.head_dim)
            query, key, value = (
                project(states).view(shape).transpose(1, 2)
                for project in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            kept.append((key, value))
            drop(index, kept)
            keys = torch.cat([k for k, _ in kept], dim=2)
            values = torch.cat([v for _, v in kept], dim=2)
            cos, sin = model.model.rotary_emb(hidden, torch.arange(len(kept))[None])
            _, keys = apply_rotary_pos_emb(keys, keys, cos, sin)
            query, _ = apply_rotary_pos_emb(query, query, cos[:, -1:], sin[:, -1:])
            mixed = torch.nn.functional.scaled_dot_product_attention(
                query, keys, values, enable_gqa=True, scale=attention.scaling
            )
            hidden = hidden + attention.o_proj(mixed.transpose(1, 2).reshape(1, 1, -1))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        rows.append(model.lm_head(model.model.norm(hidden))[0, 0])
    return torch.stack(rows).numpy()
