"""The pairs that one compression chooses from, in one layer.

Letters: S sinks, G recall slots, N segment, W window, K KV heads, D head dimension, n = G + N.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from edgeinfinite.artifact.geometry import Geometry


@dataclass(frozen=True)
class Candidates:
    """First the pairs in the recall slots, then the N that are evicted from the window.

    Every shape is fixed; what doesn't count yet follows behind.

    Args:
        count: `[]` int64, how many there are: slots in use and N.
        order: `[n]` int64, 0, 1, ...: greater is nearer to the present.
        positions: `[n]` int64, where the keys stand now.
        key, value: `[1, K, n, D]`, keys after RoPE.
    """

    count: torch.Tensor
    order: torch.Tensor
    positions: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor


def candidates_of(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    layer: int = 0,
    longest: torch.Tensor | None = None,
) -> Candidates:
    """The candidates of a layer.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + slots used so far + N + W.
        k_cache, v_cache: `[1, K, C, D]`.
        layer: which one, where G differs by layer.
        longest: `[]` int64, slots in use in the longest cache, where G differs by layer.
    """
    sinks, segment = geometry.sink_length, geometry.segment_length
    most = geometry.slots_of(layer) + segment
    count = length - sinks - geometry.window_length
    order = torch.arange(most)
    positions = order + sinks
    if longest is not None:  # the residual stands where it stands in the longest cache
        positions = positions + (order >= count - segment) * (longest - length)
    key, value = (cache[:, :, sinks : sinks + most] for cache in (k_cache, v_cache))
    return Candidates(count, order, positions, key, value)
