"""The key-value pairs that one compression chooses from, in one layer.

Letters: S sinks, G recall slots, N segment, W window, K KV heads, D head dimension, n = G + N.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.int8_cache.scales import Cache, moved


@dataclass(frozen=True)
class Candidates:
    """The pairs in the recall slots, then the N pairs evicted from the window.

    Every shape is fixed; entries from `count` on are padding.

    Args:
        count: `[]` int64, number of candidates: recall slots in use plus N.
        order: `[n]` int64, 0, 1, ...; greater is newer.
        positions: `[n]` int64, the keys' current positions.
        key, value: `[1, K, n, D]`, keys after RoPE.
    """

    count: torch.Tensor
    order: torch.Tensor
    positions: torch.Tensor
    key: Cache
    value: Cache


def candidates_of(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: Cache,
    v_cache: Cache,
    layer: int = 0,
    longest: torch.Tensor | None = None,
) -> Candidates:
    """The candidates of a layer.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + recall slots in use + N + W.
        k_cache, v_cache: `[1, K, C, D]`.
        layer: its index, needed if G differs by layer.
        longest: `[]` int64, slots in use in the longest cache, needed if G differs by layer.
    """
    sinks, segment = geometry.sink_length, geometry.segment_length
    most = geometry.slots_of(layer) + segment
    count = length - sinks - geometry.window_length
    order = torch.arange(most)
    positions = order + sinks
    if longest is not None:  # the residual has its positions of the longest cache
        positions = positions + (order >= count - segment) * (longest - length)
    key, value = (
        moved(cache, lambda slots: slots[:, :, sinks : sinks + most])
        for cache in (k_cache, v_cache)
    )
    return Candidates(count, order, positions, key, value)
