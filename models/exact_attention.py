"""Exact causal attention in PyTorch, of the newest tokens to everything before them.

Letters: H query heads, K KV heads, T new tokens, n slots, D head dimension.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from edgeinfinite.models.attention_call import AttentionCall


def causal_attention(
    call: AttentionCall,
    key: torch.Tensor,
    value: torch.Tensor,
    places: torch.Tensor | None = None,
) -> torch.Tensor:
    """softmax(Q Kᵀ · scaling) V; heads are grouped as transformers' `repeat_kv` does.

    Args:
        call: its queries are of the tokens in the last T slots, or in those of `places`; its own
            key and value are left aside.
        key, value: `[1, K, n, D]` to attend to, in the order of the text.
        places: `[T]` int64, the queries' slots; None for the last T.

    Returns:
        `[1, H, T, D]`.
    """
    query, scaling, softcap = call.query, call.scaling, call.softcap
    slots = torch.arange(key.shape[2], device=key.device)
    rows = (slots[-query.shape[2] :] if places is None else places).unsqueeze(1)
    visible = slots <= rows
    if call.sliding_window is not None:
        visible &= slots > rows - call.sliding_window
    if softcap is None:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, scale=scaling, enable_gqa=True
        )
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scores = softcap * torch.tanh(query @ key.transpose(2, 3) * scaling / softcap)
    weights = scores.masked_fill(~visible, float("-inf")).softmax(-1, dtype=torch.float32)
    return weights.to(value.dtype) @ value
