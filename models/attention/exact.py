"""Exact causal attention in PyTorch, from the newest tokens to all earlier ones.

Letters: H query heads, K KV heads, T new tokens, n slots, D head dimension.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from edgeinfinite.models.attention.call import AttentionCall


def causal_attention(
    call: AttentionCall,
    key: torch.Tensor,
    value: torch.Tensor,
    slots_of_queries: torch.Tensor | None = None,
) -> torch.Tensor:
    """softmax(Q Kᵀ · scaling) V; heads are grouped as transformers' `repeat_kv` does.

    With sinks the softmax is over the scores and one more column, see `weights_of`.

    Args:
        call: the queries, at the last T slots or at `slots_of_queries`. Its own key and value
            aren't used.
        key, value: `[1, K, n, D]` to attend to, in text order.
        slots_of_queries: `[T]` int64, the slot of each query; None for the last T.

    Returns:
        `[1, H, T, D]`.
    """
    query, scaling, softcap = call.query, call.scaling, call.softcap
    slots = torch.arange(key.shape[2], device=key.device)
    rows = (slots[-query.shape[2] :] if slots_of_queries is None else slots_of_queries).unsqueeze(1)
    visible = slots <= rows
    if call.sliding_window is not None:
        visible &= slots > rows - call.sliding_window
    if softcap is None and call.sinks is None:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, scale=scaling, enable_gqa=True
        )
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scores = query @ key.transpose(2, 3) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    sinks = None if call.sinks is None else call.sinks.view(-1, 1, 1)
    weights = weights_of(scores.masked_fill(~visible, float("-inf")), sinks)
    return weights.to(value.dtype) @ value


def weights_of(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    """The softmax of scores, over one learned logit more where there are sinks.

    exp(s_j) / (exp(sink) + Σ exp(s_i)): what a query's weights lack to 1 goes to no value.

    Args:
        scores: `[..., T, n]`, capped and masked.
        sinks: of a shape that broadcasts to `[..., T, 1]`; None for none.

    Returns:
        `[..., T, n]` float32.
    """
    if sinks is None:
        return scores.softmax(-1, dtype=torch.float32)
    column = sinks.float().expand(*scores.shape[:-1], 1)
    return torch.cat((scores.float(), column), -1).softmax(-1)[..., :-1]
