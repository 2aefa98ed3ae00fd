"""The state in ONNX Runtime's operators: attention over a cache that is updated in place.

Letters: L layers, H query heads, K KV heads, T new tokens, C capacity, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from edgeinfinite.export.graphs.state import StateTensors
from edgeinfinite.export.onnx.operators import group_query_attention
from edgeinfinite.export.onnx.passes.memory_gate import FlatGates
from edgeinfinite.export.onnx.rows import packed, unpacked
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.int8_cache.scales import CacheScales
from edgeinfinite.models.memory.gate import MemoryGate


class GatedState:
    """What the ONNX states have in common: where a token stands, and the absorbed gates.

    Args:
        given: the graph's inputs.
        gates: the gates of all layers, as `absorb_gates` returns them; empty without a memory.
        longest_layer: in which a token's position is its slot.
    """

    has_memory: torch.Tensor

    def __init__(
        self, given: StateTensors, gates: list[MemoryGate], longest_layer: int = 0
    ) -> None:
        self._given = given
        self.recurrent = list(given.recurrent)
        self._longest = longest_layer
        self._gates: FlatGates | None = None
        if given.memory is not None:
            assert given.memory_norm is not None and given.has_memory is not None
            self.has_memory = given.has_memory
            self._gates = FlatGates(gates, given.memory, given.memory_norm, given.has_memory)
        self._positions: torch.Tensor | None = None

    def carry_on(self, tensors: list[torch.Tensor]) -> None:
        """See `RecurrentState.carry_on`."""
        self.recurrent = tensors

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`; the absorbed gates ignore the result."""
        assert self._given.memory is not None and self._given.memory_norm is not None
        return self._given.memory[layer], self._given.memory_norm[layer]


class OnnxState(GatedState):
    """A `GraphState` whose attention is `com.microsoft.GroupQueryAttention`.

    The operator appends K, V at each layer's `length`, attends causally to everything before, and
    returns the caches. Past and present are bound to one buffer, so no cache is copied.

    For a layer that reads another one's cache it gets that cache as the other has left it, and no
    new K and V. What it returns as caches goes nowhere, but onnxruntime 1.29 wants a place for it
    and copies the slots in use there.

    Args:
        given: the graph's inputs; caches `[1, K, C, D]` float32, float16 or int8.
        gates, longest_layer: see `GatedState`.
        scales: of int8 caches, one per layer; empty for others.
    """

    def __init__(
        self,
        given: StateTensors,
        gates: list[MemoryGate],
        longest_layer: int = 0,
        scales: Sequence[CacheScales] = (),
    ) -> None:
        super().__init__(given, gates, longest_layer)
        self._scales = scales
        self._totals: tuple[torch.Tensor, ...] | None = None
        self._last_slots: tuple[torch.Tensor, ...] = ()
        self.k_cache = list(given.k_cache)
        self.v_cache = list(given.v_cache)

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        length = self._given.length[self._longest : self._longest + 1]
        self._positions = (length + torch.arange(tokens)).unsqueeze(0)
        return self._positions

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        layer, query = call.layer, call.query
        heads, tokens = query.shape[1:3]
        if self._totals is None:  # once for all layers
            totals = (self._given.length + tokens).to(torch.int32)
            self._totals, self._last_slots = totals.split(1), (totals - 1).split(1)
        rows = packed(query)
        key, value = packed(call.key), packed(call.value)
        if call.reads_another:
            key = value = torch.zeros(1, 0, key.shape[2])
        # The operator wants Q, K, V and caches of one type, but for int8 caches.
        scale = self._scales[layer] if self._scales else None
        cached = query.dtype if scale else self.k_cache[layer].dtype
        attended, *caches = group_query_attention(
            rows.to(cached),
            key.to(cached),
            value.to(cached),
            self.k_cache[layer],
            self.v_cache[layer],
            self._last_slots[layer],
            self._totals[layer],
            heads=heads,
            kv_heads=call.key.shape[1],
            scale=float(call.scaling),
            softcap=float(call.softcap or 0.0),
            window=call.sliding_window or -1,
            scales=(scale.key[None, :, None], scale.value[None, :, None]) if scale else None,
            sinks=None if call.sinks is None else call.sinks.to(cached),
        )
        if not call.reads_another:
            self.k_cache[layer], self.v_cache[layer] = caches
        attended = attended.to(query.dtype)
        if self._gates is not None:
            assert self._positions is not None
            attended = self._gates.apply(layer, rows, attended, self._positions)
        return unpacked(attended, heads)

    def outputs(self) -> list[torch.Tensor]:
        """The caches after the call, K of all layers first."""
        return [*self.k_cache, *self.v_cache]
