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
        positions: `[n]` int64, the keys' current positions in heads that keep pairs by rank.
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
    reach: int | None = None,
) -> Candidates:
    """The candidates of a layer.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + recall slots in use + N + W.
        k_cache, v_cache: `[1, K, C, D]`.
        layer: its index, needed if G differs by layer.
        longest: `[]` int64, slots in use in the longest cache, needed if G differs by layer.
        reach: `RankRule.reach_of` these slots.
    """
    sinks, segment = geometry.sink_length, geometry.segment_length
    slots = geometry.slots_of(layer)
    most = slots + segment
    count = length - sinks - geometry.window_length
    order = torch.arange(most)
    positions = order + sinks
    if longest is not None:  # the residual has its positions of the longest cache
        positions = positions + (order >= count - segment) * (longest - length)
    if reach is not None:
        residual = (length if longest is None else longest) - segment - geometry.window_length
        near = slot_positions(sinks, slots, count - segment, residual, reach)
        near = torch.cat((near, positions[slots:]))
        positions = torch.where(order < count - segment, near, positions)
    key, value = (
        moved(cache, lambda slots: slots[:, :, sinks : sinks + most])
        for cache in (k_cache, v_cache)
    )
    return Candidates(count, order, positions, key, value)


def slot_positions(
    sinks: int, slots: int, used: torch.Tensor, residual: torch.Tensor, reach: int | None
) -> torch.Tensor:
    """`[G]` int64: positions of the recall slots of a head that keeps pairs by rank.

    Behind the sinks, one after the other. With `reach`, directly before the residual: slot j of U
    in use stands ceil((U - j) min(1, reach / U)) positions before it. So nothing moves until more
    than `reach` are in use or pairs were left out.

    Args:
        sinks, slots: S, G.
        used: `[]` int64, slots in use.
        residual: `[]` int64, position of the residual's first token.
        reach: see `candidates_of`.
    """
    order = torch.arange(slots)
    if reach is None:
        return sinks + order
    used = torch.clamp(used, min=1, max=slots)
    left = torch.clamp(used - order, min=0)
    return residual - (left * torch.clamp(used, max=reach) + used - 1) // used
