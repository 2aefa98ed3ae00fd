"""The reference state: plain PyTorch tensors, updated in place (docs/develop/architecture.md).

Letters: L layers, H query heads, K KV heads, T new tokens, C capacity, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention
from edgeinfinite.models.int8_cache.scales import Cache
from edgeinfinite.models.memory.compressive import compress
from edgeinfinite.models.memory.feature_map import FeatureMap


@dataclass
class TensorState:
    """KV cache, memory and scores of one text.

    Args:
        length: `[L]` int64, slots in use in every layer's cache.
        k_cache, v_cache: per layer `[1, K, C, D]`, float32, float16 or `ScaledCache` (attention
            computes in the queries' dtype); rows from `length` on are unused.
        memory: M, `[L, K, D, D]` float32.
        memory_norm: z, `[L, K, D]` float32.
        has_memory: `[1]` float, 0 or 1.
        scores: per layer `[1, K, G]` float32 of the recall slots; None where no head scores.
        longest_layer: in which a token's position is its slot.
        recurrent: what layers keep beside caches, see `recurrent_states`.
    """

    length: torch.Tensor
    k_cache: Sequence[Cache]
    v_cache: Sequence[Cache]
    memory: torch.Tensor
    memory_norm: torch.Tensor
    has_memory: torch.Tensor
    scores: list[torch.Tensor | None] = field(default_factory=list)
    longest_layer: int = 0
    recurrent: list[torch.Tensor] = field(default_factory=list)

    def carry_on(self, tensors: list[torch.Tensor]) -> None:
        """See `RecurrentState.carry_on`; in place."""
        for held, new in zip(self.recurrent, tensors, strict=True):
            held.copy_(new)

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return (self.length[self.longest_layer] + torch.arange(tokens)).unsqueeze(0)

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        return self.memory[layer], self.memory_norm[layer]

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        start = int(self.length[call.layer])
        end = start + call.key.shape[2]
        keys, values = self.k_cache[call.layer], self.v_cache[call.layer]
        if not call.reads_another:
            keys[:, :, start:end] = call.key
            values[:, :, start:end] = call.value
        keys, values = (cache[:, :, :end].to(call.query.dtype) for cache in (keys, values))
        return causal_attention(call, keys, values)


def fold_oldest(
    geometry: Geometry,
    k_cache: Sequence[Cache],
    v_cache: Sequence[Cache],
    memory: torch.Tensor,
    memory_norm: torch.Tensor,
    length: torch.Tensor | None = None,
    *,
    feature_maps: Sequence[FeatureMap],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Folds the N oldest tokens of the cache's residual into the memory.

    Under `reencode` they are at slots S..S+N-1. Their K and V were computed with the same sinks,
    positions and memory as in Algorithm 1's own pass, so this equals its line 25 without running
    the backbone again. Under `carry` they come after the recall slots, at N + W before the end.

    Args:
        geometry: S, N, W.
        k_cache, v_cache: per layer `[1, K, C, D]`, at least S + N slots in use.
        memory: the old M, `[L, K, D, D]` float32.
        memory_norm: the old z, `[L, K, D]` float32.
        length: `[L]` int64, slots in use; None under `reencode`.
        feature_maps: σ of every layer.

    Returns:
        The new M and z, tensors of the same shapes.
    """
    folded = []
    caches = zip(k_cache, v_cache, feature_maps, strict=True)
    for layer, (keys, values, feature_map) in enumerate(caches):
        rows = _oldest(geometry, None if length is None else length[layer])
        key, value = _rows(keys, rows), _rows(values, rows)
        folded.append(compress(key, value, memory[layer], memory_norm[layer], feature_map))
    return torch.stack([m for m, _ in folded]), torch.stack([z for _, z in folded])


def _rows(cache: Cache, rows: slice | torch.Tensor) -> torch.Tensor:
    """`[K, rows, D]` of a cache `[1, K, C, D]`, without copying the rest."""
    chosen = cache[:, :, rows] if isinstance(rows, slice) else cache.index_select(2, rows)
    return chosen.squeeze(0)


def _oldest(geometry: Geometry, length: torch.Tensor | None) -> slice | torch.Tensor:
    if length is None:
        return slice(geometry.sink_length, geometry.sink_length + geometry.segment_length)
    start = length - geometry.segment_length - geometry.window_length
    return start + torch.arange(geometry.segment_length)
