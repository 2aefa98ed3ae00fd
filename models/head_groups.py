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
    attend: Attend,
    call: AttentionCall,
    caches: Sequence[tuple[int, tuple[int, ...]]],
    *,
    by_rows: bool = False,
) -> torch.Tensor:
    """A_dot `[B, H, T, D]` of a layer, from one call for each of its caches.

    Args:
        attend: of the state; the call's layer is the number of the cache.
        call: of the whole layer.
        caches: number and KV heads of each of the layer's caches.
        by_rows: cut heads out of rows `[B, T, heads * D]`. The result is the same; a graph whose
            attention reads rows transposes nothing then.
    """
    if len(caches) == 1:
        return attend(replace(call, layer=caches[0][0]))
    cut = _cut_rows if by_rows else _cut_heads
    join = _join_rows if by_rows else _join_heads
    shared = call.query.shape[1] // call.key.shape[1]
    parts: dict[int, torch.Tensor] = {}
    for cache, heads in caches:
        queries = [head * shared + i for head in heads for i in range(shared)]
        found = attend(
            replace(
                call,
                layer=cache,
                query=join([cut(call.query, *run) for run in _runs(queries)]),
                key=join([cut(call.key, *run) for run in _runs(heads)]),
                value=join([cut(call.value, *run) for run in _runs(heads)]),
            )
        )
        start = 0
        for first, count in _runs(queries):
            parts[first] = cut(found, start, count)
            start += count
    return join([parts[first] for first in sorted(parts)])


def _cut_heads(tensor: torch.Tensor, first: int, count: int) -> torch.Tensor:
    """So many heads of `[B, heads, T, D]`."""
    return tensor[:, first : first + count]


def _join_heads(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)


def _cut_rows(tensor: torch.Tensor, first: int, count: int) -> torch.Tensor:
    if count == tensor.shape[1]:
        return tensor
    dim = tensor.shape[-1]
    return unpacked(packed(tensor)[..., first * dim : (first + count) * dim], count)


def _join_rows(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(parts) == 1:
        return parts[0]
    heads = sum(part.shape[1] for part in parts)
    return unpacked(torch.cat([packed(part) for part in parts], dim=2), heads)


def packed(x: torch.Tensor) -> torch.Tensor:
    """`[B, heads, T, D]` as rows `[B, T, heads * D]`."""
    return x.transpose(1, 2).flatten(2)


def unpacked(x: torch.Tensor, heads: int) -> torch.Tensor:
    """`[B, T, heads * D]` as `[B, heads, T, D]`."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def _runs(heads: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first of heads that follow each other, and how many they are."""
    first = last = heads[0]
    for head in heads[1:]:
        if head != last + 1:
            yield first, last + 1 - first
            first = head
        last = head
    yield first, last + 1 - first
