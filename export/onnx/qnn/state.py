"""The state in plain operators, for the HTP: attention over cached and new tokens side by side.

The caches are read only. The new tokens' K and V are outputs, which the host writes into the
caches, so a token that only fills a chunk up never gets there. Nothing is as long as the text.

Letters: L layers, H query heads, K KV heads, R query heads per KV head, T new tokens, C capacity of
a layer, D head dimension.
"""

from __future__ import annotations

import torch

from edgeinfinite.export.graphs.state import StateTensors
from edgeinfinite.export.onnx.rows import packed, unpacked
from edgeinfinite.export.onnx.state import GatedState
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.memory.gate import MemoryGate

MASKED = -3e4
"""Added to the scores of slots that aren't visible; float16 holds twice as much."""


class QnnState(GatedState):
    """A `GraphState` of MatMul, Add and Softmax.

    Args:
        given: the graph's inputs; K caches `[1, K, D, C]`, V caches `[1, K, C, D]`, float16.
        gates, longest_layer: see `GatedState`.
    """

    def __init__(
        self, given: StateTensors, gates: list[MemoryGate], longest_layer: int = 0
    ) -> None:
        super().__init__(given, gates, longest_layer)
        self._length = given.length.to(torch.int32).split(1)
        self._masks: dict[tuple[int, ...], torch.Tensor] = {}
        self._new: list[tuple[torch.Tensor, torch.Tensor]] = []

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`; int32, which is what the HTP counts in."""
        first = self._length[self._longest]
        self._positions = (first + torch.arange(tokens, dtype=torch.int32)).unsqueeze(0)
        return self._positions

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        layer = call.layer
        _, heads, tokens, dim = call.query.shape
        kv_heads, repeats = call.key.shape[1], heads // call.key.shape[1]
        k_cache = self._given.k_cache[layer].float()
        v_cache = self._given.v_cache[layer].float()
        slots = v_cache.shape[2]
        # The query heads of one KV head are stacked along T: one product, and nothing is repeated.
        query = (call.query * call.scaling).reshape(1, kv_heads, repeats * tokens, dim)
        new_key = call.key.transpose(2, 3)
        window = call.sliding_window or 0
        scores = (
            _capped(query @ k_cache, call.softcap)
            + self._past(layer, slots, tokens, window, repeats),
            _capped(query @ new_key, call.softcap) + _future(tokens, window).repeat(repeats, 1),
        )
        weights = torch.softmax(torch.cat(scores, -1), -1)
        old, new = weights.split((slots, tokens), -1)
        attended = (old @ v_cache + new @ call.value).reshape(1, heads, tokens, dim)
        self._new.append((new_key.half(), call.value.half()))
        if self._gates is None:
            return attended
        assert self._positions is not None
        rows = self._gates.apply(layer, packed(call.query), packed(attended), self._positions)
        return unpacked(rows, heads)

    def outputs(self) -> list[torch.Tensor]:
        """The new K `[1, K, D, T]` of all layers, then the new V `[1, K, T, D]`."""
        return [key for key, _ in self._new] + [value for _, value in self._new]

    def _past(self, layer: int, slots: int, tokens: int, window: int, repeats: int) -> torch.Tensor:
        """The mask of the cached slots, `[1, C]`, or `[R T, C]` with a sliding window.

        Layers of equal capacity have equal lengths, so they share it.
        """
        known = self._masks.get((slots, window))
        if known is not None:
            return known
        slot = torch.arange(slots, dtype=torch.int32).unsqueeze(0)
        length = self._length[layer]
        mask = torch.where(slot < length, 0.0, MASKED)
        if window:
            # Token t, whose own slot would be length + t, sees `window` slots up to its own.
            token = torch.arange(tokens, dtype=torch.int32).unsqueeze(1)
            near = slot + (window - token) > length
            mask = (mask + torch.where(near, 0.0, MASKED)).clamp_min(MASKED).repeat(repeats, 1)
        self._masks[slots, window] = mask
        return mask


def _future(tokens: int, window: int) -> torch.Tensor:
    """The mask of the new tokens among themselves, `[T, T]`: causal, and within the window."""
    token = torch.arange(tokens)
    behind = token.unsqueeze(1) - token.unsqueeze(0)
    visible = (behind >= 0) & (behind < (window or tokens))
    return torch.where(visible, 0.0, MASKED)


def _capped(scores: torch.Tensor, softcap: float | None) -> torch.Tensor:
    return scores if softcap is None else softcap * torch.tanh(scores / softcap)
