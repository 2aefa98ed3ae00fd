"""What later text asks for: the attention that the frozen backbone pays, watched layer by layer.

Letters: H query heads, K KV heads, T tokens, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.adapter import register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention, weights_of
from edgeinfinite.models.attention.interface import attention_implementation

OBSERVED_ATTENTION = "edgeinfinite-observed"
_WATCH_ARGUMENT = "edgeinfinite_watch"
_QUERY_CHUNK = 256


@dataclass(frozen=True)
class Observation:
    """One layer of one pass.

    Args:
        key: `[K, T, D]` after RoPE.
        value: `[K, T, D]`.
        largest: `[K, T]`, the largest attention weight that a token got from a later query.
        asked: `[K, T]`, the sum of the weights from the text's last tokens alone, which ask for
            the facts.
    """

    key: torch.Tensor
    value: torch.Tensor
    largest: torch.Tensor
    asked: torch.Tensor


Observer = Callable[[int, Observation], None]


@dataclass(frozen=True)
class _Watch:
    observer: Observer
    gap: int
    asking: int
    layers: frozenset[int]


def watched_layers(model: PreTrainedModel) -> list[int]:
    """The layers that can look back at any distance; those with sliding windows recall nothing."""
    return [i for i, window in enumerate(architecture_of(model).sliding_windows) if not window]


def observe(
    model: PreTrainedModel, tokens: list[int], gap: int, asking: int, observer: Observer
) -> None:
    """One forward pass with full attention; the observer is called for `watched_layers`.

    Args:
        model: a backbone; its weights and answers stay as they are.
        tokens: T ids.
        gap: a query counts as later if it comes at least this many tokens after the key.
        asking: number of last tokens that `Observation.asked` is about.
        observer: called with the layer's index and its `Observation`, which it may keep.
    """
    watch = _Watch(observer, gap, asking, frozenset(watched_layers(model)))
    with torch.inference_mode(), attention_implementation(model, OBSERVED_ATTENTION):
        model(
            input_ids=torch.tensor([tokens]),
            use_cache=False,
            logits_to_keep=1,
            **{_WATCH_ARGUMENT: watch},
        )


def _attend(call: AttentionCall, _: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    """See `adapter.Attend`; a batch of one."""
    watch: _Watch = others[_WATCH_ARGUMENT]
    query, key, value, softcap = call.query, call.key, call.value, call.softcap
    if call.layer not in watch.layers or call.reads_another:
        return causal_attention(call, key, value)
    kv_heads, tokens, dim = key.shape[1:]
    grouped = query[0].reshape(kv_heads, -1, tokens, dim)
    sinks = None if call.sinks is None else call.sinks.view(kv_heads, -1, 1, 1)
    largest, asked = (torch.zeros(kv_heads, tokens) for _ in range(2))
    mixed = torch.empty_like(grouped)
    for start in range(0, tokens, _QUERY_CHUNK):
        end = min(start + _QUERY_CHUNK, tokens)
        rows, columns = torch.arange(start, end).unsqueeze(1), torch.arange(end)
        part = (grouped[:, :, start:end] * call.scaling).flatten(1, 2)
        scores = (part @ key[0, :, :end].transpose(1, 2)).unflatten(1, (-1, end - start))
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        hidden = columns > rows
        if call.sliding_window is not None:
            hidden |= columns <= rows - call.sliding_window
            scores.masked_fill_(hidden, float("-inf"))
        else:  # the columns before the chunk are seen by all of it
            scores[..., start:].masked_fill_(hidden[:, start:], float("-inf"))
        weights = weights_of(scores, sinks).to(scores.dtype)
        flat = weights.flatten(1, 2)
        mixed[:, :, start:end] = (flat @ value[0, :, :end]).unflatten(1, (-1, end - start))
        reached = end - watch.gap  # columns that at least the last query comes late enough for
        if reached <= 0:
            continue
        weights = weights[..., :reached]
        first = max(0, start - watch.gap + 1)
        weights[..., first:].masked_fill_((columns > rows - watch.gap)[:, first:reached], 0.0)
        largest[:, :reached] = largest[:, :reached].maximum(weights.amax(2).amax(1))
        if end > tokens - watch.asking:
            asked[:, :reached] += weights[:, :, max(0, tokens - watch.asking - start) :].sum((1, 2))
    watch.observer(call.layer, Observation(key[0], value[0], largest, asked))
    return mixed.flatten(0, 1).unsqueeze(0)


register_attention(OBSERVED_ATTENTION, _attend)
