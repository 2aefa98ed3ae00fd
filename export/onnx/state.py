"""The state in ONNX Runtime's operators: attention over a cache that is updated in place.

Letters: L layers, H query heads, K KV heads, T new tokens, C capacity, D head dimension.
"""

from __future__ import annotations

import torch

from edgeinfinite.export.graphs import StateTensors
from edgeinfinite.export.onnx.operators import group_query_attention


class OnnxState:
    """A `GraphState` whose attention is `com.microsoft.GroupQueryAttention`.

    The operator appends K, V at each layer's `length`, attends causally to everything before, and
    returns the caches: with past and present bound to one buffer nothing is ever copied.

    Args:
        given: the graph's inputs; caches `[1, K, C, D]` float32.
    """

    has_memory: torch.Tensor

    def __init__(self, given: StateTensors) -> None:
        self._given = given
        if given.has_memory is not None:
            self.has_memory = given.has_memory
        self.k_cache = list(given.k_cache)
        self.v_cache = list(given.v_cache)

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return (self._given.length[:1] + torch.arange(tokens)).unsqueeze(0)

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        assert self._given.memory is not None and self._given.memory_norm is not None
        return self._given.memory[layer], self._given.memory_norm[layer]

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *,
        scaling: float,
        sliding_window: int | None,
        softcap: float | None,
    ) -> torch.Tensor:
        """See `AttentionState.attend`."""
        _, heads, tokens, dim = query.shape
        totals = (self._given.length + tokens).to(torch.int32)
        attended, self.k_cache[layer], self.v_cache[layer] = group_query_attention(
            packed(query),
            packed(key),
            packed(value),
            self.k_cache[layer],
            self.v_cache[layer],
            totals[layer : layer + 1] - 1,
            totals[layer],
            heads=heads,
            kv_heads=key.shape[1],
            scale=float(scaling),
            softcap=float(softcap or 0.0),
            window=sliding_window or -1,
        )
        return unpacked(attended, heads)

    def outputs(self) -> list[torch.Tensor]:
        """The caches after the call, K of all layers first."""
        return [*self.k_cache, *self.v_cache]


def packed(x: torch.Tensor) -> torch.Tensor:
    """`[1, heads, T, D]` as `[1, T, heads * D]`."""
    return x.transpose(1, 2).flatten(2)


def unpacked(x: torch.Tensor, heads: int) -> torch.Tensor:
    """`[1, T, heads * D]` as `[1, heads, T, D]`."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)
