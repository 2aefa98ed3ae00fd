"""More than one cache in a layer, each for some of its KV heads and with slots of its own.

Few heads look for things far back (DuoAttention, arXiv 2410.10819). An attention operator has as
many slots for every head, so heads that differ in what they need are computed by two operators.

Letters: H query heads, K KV heads, T new tokens, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from edgeinfinite.models.attention_call import AttentionCall

Attend = Callable[[AttentionCall], torch.Tensor]


class CacheParts:
    """What belongs to one cache of a layer.

    Args:
        layer_idx: the layer.
        heads: its KV heads.
    """

    def __init__(self, layer_idx: int, heads: tuple[int, ...]) -> None:
        self.layer_idx = layer_idx
        self.heads = heads
        self.memory_gate: None = None
        self.retention_scorer: Any = None
        self.cache_scales: Any = None


def share_layers(
    layers: Sequence[Any], caches: Sequence[tuple[int, tuple[int, ...]]]
) -> list[CacheParts]:
    """Tells each attention module which caches are its own.

    Args:
        layers: attention modules.
        caches: `Geometry.cache_heads`.

    Returns:
        The parts of every cache.
    """
    for index, module in enumerate(layers):
        own = [(at, heads) for at, (layer, heads) in enumerate(caches) if layer == index]
        module.edgeinfinite_caches = own
    return [CacheParts(layer, heads) for layer, heads in caches]


def attend_by_groups(
    attend: Attend, call: AttentionCall, caches: Sequence[tuple[int, tuple[int, ...]]]
) -> torch.Tensor:
    """A_dot `[B, H, T, D]` of a layer, from one call for each of its caches.

    Args:
        attend: of the state; the call's layer is the number of the cache.
        call: of the whole layer.
        caches: number and KV heads of each of the layer's caches.
    """
    if len(caches) == 1:
        return attend(replace(call, layer=caches[0][0]))
    shared = call.query.shape[1] // call.key.shape[1]
    parts: dict[int, torch.Tensor] = {}
    for cache, heads in caches:
        queries = [head * shared + i for head in heads for i in range(shared)]
        found = attend(
            replace(
                call,
                layer=cache,
                query=_heads(call.query, queries),
                key=_heads(call.key, heads),
                value=_heads(call.value, heads),
            )
        )
        parts.update(zip(queries, found.split(1, dim=1), strict=True))
    return torch.cat([parts[head] for head in sorted(parts)], dim=1)


def _heads(tensor: torch.Tensor, heads: Sequence[int]) -> torch.Tensor:
    """Some heads of `[B, heads, T, D]`."""
    runs = [tensor[:, first : last + 1] for first, last in _runs(heads)]
    return runs[0] if len(runs) == 1 else torch.cat(runs, dim=1)


def _runs(heads: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of the heads that follow each other."""
    first = last = heads[0]
    for head in heads[1:]:
        if head != last + 1:
            yield first, last
            first = head
        last = head
    yield first, last
