"""What tokens after a text pay to it: the backbone's attention to a cached text.

Letters: L layers, B batch, H query heads, K KV heads, T tokens of the text, n tokens after it,
D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    DynamicCache,
    PreTrainedModel,
)
from transformers.cache_utils import CacheLayerMixin

from edgeinfinite.models.attention import attention_implementation

PAID_ATTENTION = "edgeinfinite-paid"
_PAID_ARGUMENT = "edgeinfinite_paid"
_PART = 256


@dataclass
class _Paid:
    """Args: text: T. largest: of each layer that was passed, `[K, T]` float32."""

    text: int
    largest: list[torch.Tensor] = field(default_factory=list)


def read_text(model: PreTrainedModel, tokens: Sequence[int]) -> DynamicCache:
    """Keys and values of T tokens with full attention; the model has no sliding windows."""
    cache = DynamicCache()
    with torch.inference_mode(), attention_implementation(model, "sdpa"):
        for start in range(0, len(tokens), 2 * _PART):
            part = torch.tensor([tokens[start : start + 2 * _PART]])
            model(input_ids=part, past_key_values=cache, logits_to_keep=1)
    return cache


def largest_paid(model: PreTrainedModel, cache: DynamicCache, after: torch.Tensor) -> torch.Tensor:
    """The largest attention weight that any token after a text pays to each of its tokens.

    Args:
        model: without sliding windows.
        cache: T tokens of `read_text`; stays as it was.
        after: `[B, n]` int64, B texts that follow it, each by itself.

    Returns:
        `[L, K, T]` float32.
    """
    text = cache.get_seq_length()
    if len(after) > 1:
        cache = repeated_cache(cache, len(after))
    largest = torch.zeros(())
    for start in range(0, after.shape[1], _PART):
        part = after[:, start : start + _PART]
        paid = _Paid(text)
        at = text + start
        with torch.inference_mode(), attention_implementation(model, PAID_ATTENTION):
            model(
                input_ids=part,
                past_key_values=cache,
                position_ids=torch.arange(at, at + part.shape[1])[None],
                logits_to_keep=1,
                **{_PAID_ARGUMENT: paid},
            )
        largest = largest.maximum(torch.stack(paid.largest))
    cache.crop(-after.shape[1])
    return largest


def repeated_cache(cache: DynamicCache, batch: int) -> DynamicCache:
    """The cache of one text for a batch of B that goes on from it; the given one stays."""
    repeated = DynamicCache()
    for layer, (keys, values) in enumerate(cached(cache)):
        repeated.update(keys, values, layer)
    repeated.batch_repeat_interleave(batch)
    return repeated


def cached(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of every layer, `[1, K, T, D]` each."""
    found = []
    for layer in cache.layers:
        assert isinstance(layer, CacheLayerMixin)
        assert layer.keys is not None and layer.values is not None
        found.append((layer.keys, layer.values))
    return found


def _paid_attention(
    _module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,  # noqa: ARG001  (frozen backbone)
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    paid: _Paid = kwargs[_PAID_ARGUMENT]
    kv_heads, total, dim = key.shape[1:]
    new = query.shape[2]
    grouped = query.unflatten(1, (kv_heads, -1)) * (dim**-0.5 if scaling is None else scaling)
    scores = grouped.flatten(2, 3) @ key.transpose(2, 3)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.unflatten(2, (-1, new))
    later = torch.ones(new, new, dtype=torch.bool).triu(1)
    scores[..., total - new :].masked_fill_(later, float("-inf"))
    weights = scores.softmax(-1)
    paid.largest.append(weights[..., : paid.text].amax((0, 2, 3)).float())
    mixed = (weights.flatten(2, 3) @ value).unflatten(2, (-1, new)).flatten(1, 2)
    return mixed.transpose(1, 2), None


AttentionInterface.register(PAID_ATTENTION, _paid_attention)
AttentionMaskInterface.register(PAID_ATTENTION, lambda *args, **kwargs: None)
