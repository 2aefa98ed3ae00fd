"""Exact causal attention without a mask of T x n, behind transformers' attention interface.

Letters: B batch, H query heads, K KV heads, G = H / K, T queries, n keys, D head dimension.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from edgeinfinite.models.attention.adapter import register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import weights_of
from edgeinfinite.models.mom.row_rounding import last_queries, query_blocks, stand_alone

EXACT_ATTENTION = "edgeinfinite-exact"
LAST_LAYER_ARGUMENT = "edgeinfinite_last_layer"
PROMPT_ARGUMENT = "edgeinfinite_prompt"
"""Names of arguments of the model, which transformers hands on to the attention."""

_QUERIES = 512
"""Queries of one block. With chunks of a multiple of it, attention is that of a whole prompt bit
for bit, see `row_rounding.query_blocks`."""

_CAPPED_QUERIES = 128
"""Queries of a block where scores stand in memory, `[B, H, T, n]`: see `_explicit`."""


def lean_attention(
    call: AttentionCall, key: torch.Tensor, value: torch.Tensor, prompt: int | None = None
) -> torch.Tensor:
    """softmax(Q Kᵀ · scaling) V of the newest T of n tokens, each over itself and all before it.

    Args:
        call: the queries `[B, H, T, D]`; its own key and value aren't used.
        key, value: `[B, K, n, D]`, the newest last.
        prompt: tokens of the call that the T are a chunk of; None: they aren't.

    Returns:
        `[B, H, T, D]`.
    """
    tokens, slots = call.query.shape[2], key.shape[2]
    window = slots if call.sliding_window is None else min(call.sliding_window, slots)
    cut_alike = prompt in (None, tokens) or tokens % _QUERIES == 0
    explicit = _explicit(call)
    if not explicit and tokens == slots == window and tokens > 1 and cut_alike:
        return functional.scaled_dot_product_attention(
            call.query, key, value, is_causal=True, scale=call.scaling, enable_gqa=True
        )
    block = _CAPPED_QUERIES if explicit else _QUERIES
    blocks = list(query_blocks(tokens, prompt or tokens, block))
    if len(blocks) < 2:
        return _block(call, call.query, key, value, window)
    attended = torch.empty_like(call.query)
    for start, end in blocks:
        last = slots - tokens + end
        seen = slice(max(0, last - (end - start) - window + 1), last)
        attended[:, :, start:end] = _block(
            call, call.query[:, :, start:end], key[:, :, seen], value[:, :, seen], window
        )
    return attended


def _explicit(call: AttentionCall) -> bool:
    """Whether its scores are capped or have sinks beside them: PyTorch's own attention has none."""
    return call.softcap is not None or call.sinks is not None


def _block(
    call: AttentionCall,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    window: int,
) -> torch.Tensor:
    """Attention of a few queries; the last one is the last key's."""
    if query.shape[2] == 1:
        key, value = key[:, :, -window:], value[:, :, -window:]
        if not _explicit(call):
            return functional.scaled_dot_product_attention(
                query, key, value, scale=call.scaling, enable_gqa=True
            )
    mask = _mask_of_reversed(query, key.shape[2], window)
    if not _explicit(call) and stand_alone(query.shape[2]):  # which are the last ones, so in order
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask.flip(0), scale=call.scaling, enable_gqa=True
        )
    query = query.flip(2)
    if _explicit(call):
        return _by_scores(call, query, key, value, mask).flip(2)
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=call.scaling, enable_gqa=True
    ).flip(2)


def _mask_of_reversed(query: torch.Tensor, slots: int, window: int) -> torch.Tensor:
    """0 where queries, the newest first, may look, else -inf: `[T, n]` in T + n - 1 numbers.

    Query i of the reversed order sees key j if n - window <= i + j <= n - 1. So the mask's entries
    depend on i + j alone, and each row is a view of one vector, one further than the row before.
    """
    tokens = query.shape[2]
    line = query.new_full((tokens + slots - 1,), float("-inf"))
    line[max(0, slots - window) : slots] = 0
    mask = line.as_strided((tokens, slots), (1, 1))
    return mask if query.device.type == "cpu" else mask.contiguous()  # GPU kernels need rows


def _by_scores(
    call: AttentionCall,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """Attention whose scores are capped to softcap * tanh(scores / softcap), or have sinks."""
    batch, heads, tokens, dim = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(batch, kv_heads, heads // kv_heads, tokens, dim)
    scores = grouped @ key.unsqueeze(2).transpose(3, 4) * call.scaling
    if call.softcap is not None:
        scores = scores.div_(call.softcap).tanh_().mul_(call.softcap)
    sinks = None if call.sinks is None else call.sinks.view(kv_heads, -1, 1, 1)
    weights = weights_of(scores.add_(mask), sinks).to(query.dtype)
    return (weights @ value.unsqueeze(2)).view(batch, heads, tokens, dim)


def _attend(call: AttentionCall, _: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    """See `adapter.Attend`.

    In the layer that `LAST_LAYER_ARGUMENT` names, only the last token's attention is read.
    """
    key, value = call.key, call.value
    tokens, prompt = call.query.shape[2], others.get(PROMPT_ARGUMENT)
    if call.layer == others.get(LAST_LAYER_ARGUMENT) and tokens > 1:
        last = replace(call, query=call.query[:, :, -last_queries(tokens, prompt or tokens) :])
        return lean_attention(last, key, value)[:, :, -1:].expand(-1, -1, tokens, -1)
    return lean_attention(call, key, value, prompt)


register_attention(EXACT_ATTENTION, _attend)
