"""The state in ExecuTorch's operators: caches are inputs, written in the caller's memory.

Letters: L layers, H query heads, K KV heads, R query heads per KV head, T new tokens, C capacity,
U the number of first slots of a cache that a call gets (length + T or more), D head dimension.
Caches have the layout `B C K D`, in which the first U slots are one piece of memory. C, U and
length belong to a layer. Layers of the same capacity and sliding window (a `LayerKind`) always have
the same length, so everything that depends on a length is computed once per kind.

An int8 cache is read as its codes, which XNNPACK converts to float32 (`codes.py`). The scales s of
its channels stay where they cost least:

    q · (s_k ∘ codes) = (q ∘ s_k) · codes        p · (codes ∘ s_v) = (p · codes) ∘ s_v
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

from edgeinfinite.export.executorch import operators  # noqa: F401  (registers llama::*)
from edgeinfinite.export.executorch.codes import NewPairs, numbers_of
from edgeinfinite.export.graphs.state import StateTensors
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.int8_cache.scales import CacheScales

MASKED = -3e4
"""Added to the scores of masked slots: exp() of it is 0, and XNNPACK's result stays finite."""

FUTURE = 1e6
"""Added to the number of a slot that holds nothing yet."""


class LayerKind(NamedTuple):
    """What decides a layer's length and mask.

    Args:
        capacity: C.
        window: the newest slots that a token sees, its own included; 0: all.
    """

    capacity: int
    window: int = 0


class Spreading(NamedTuple):
    """Constants by which one token attends in layers of K heads of D dimensions.

    Args:
        blocks: `[H, K D]`, 1 in the columns of a query head's KV head, else 0.
        spread: `[K D, D]`, one identity per KV head.
        gathered: the transpose of `spread`, `[D, K D]`.
    """

    blocks: torch.Tensor
    spread: torch.Tensor
    gathered: torch.Tensor


class _ExecuTorchState:
    """What prefill and decode have in common.

    Args:
        given: the graph's inputs; caches `[1, U, K, D]` float32 or int8.
        kinds: of every layer.
        longest_layer: in which a token's position is its slot.
        scales: of int8 caches, one per layer; None in each for others.
    """

    def __init__(
        self,
        given: StateTensors,
        kinds: list[LayerKind],
        longest_layer: int,
        scales: Sequence[CacheScales | None],
    ) -> None:
        self._given = given
        self.recurrent = list(given.recurrent)
        self._scales = scales
        self._kinds = kinds
        self._longest = longest_layer
        # For every layer: the first layer of the same kind.
        self._like = [kinds.index(kind) for kind in kinds]
        # None without a gate; then nothing reads it.
        self.has_memory: torch.Tensor = given.has_memory  # type: ignore[assignment]
        self._starts = {layer: given.length[layer].item() for layer in sorted(set(self._like))}
        for start in self._starts.values():
            torch._check(start >= 0)
        self._new: list[tuple[int, torch.Tensor, torch.Tensor]] = []
        self._pairs: dict[int, NewPairs] = {}

    def _length_of(self, layer: int) -> torch.Tensor:
        """Slots in use, `[1]` int64."""
        return self._given.length[layer : layer + 1]

    def carry_on(self, tensors: list[torch.Tensor]) -> None:
        """See `RecurrentState.carry_on`."""
        self.recurrent = tensors

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        memory, norm = self._given.memory, self._given.memory_norm
        assert memory is not None and norm is not None
        # XNNPACK takes slices and reshapes, but not memory[layer].
        kv_heads, dim = norm.shape[1:]
        one_memory = memory.narrow(0, layer, 1).reshape(kv_heads, dim, dim)
        return one_memory, norm.narrow(0, layer, 1).reshape(kv_heads, dim)

    def _new_pairs(self, call: AttentionCall) -> NewPairs:
        """K, V of the new tokens as attention sees them; keeps what is written until `outputs`.

        A layer that reads another one's cache gets that one's, which came before it.
        """
        layer = call.layer
        if call.reads_another:
            return self._pairs[layer]
        pairs = self._pairs[layer] = NewPairs.of(call.key, call.value, self._scales[layer])
        both = self._given.k_cache, self._given.v_cache
        for new, caches in zip(pairs.written, both, strict=True):
            self._new.append((self._like[layer], new, caches[layer]))
        return pairs

    def outputs(self) -> list[torch.Tensor]:
        """Writes the new rows into the caller's caches from slot `length` on, after all reads."""
        for like, new, cache in self._new:
            start = self._starts[like]
            torch._check(start + new.shape[1] <= cache.shape[1])
            torch._check(start < cache.shape[1])
            torch.ops.llama.update_cache(new, cache, start)
        return []


@dataclass(frozen=True)
class _Places:
    """Where a new token belongs in the caches of one kind: vectors `[1, U]` float32.

    Args:
        here: 1 at the slot `length`, else 0.
        elsewhere: 0 at that slot, else 1.
        mask: `MASKED` after that slot and before the token's window, else 0.
    """

    here: torch.Tensor
    elsewhere: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def of(cls, slots: int, length: torch.Tensor, window: int) -> _Places:
        """Uses float arithmetic only, which XNNPACK takes; `length` is `[1]` int64."""
        after = torch.arange(slots, dtype=torch.float32) - length.to(torch.float32)
        here = (-after * after + 1.0).clamp(0.0, 1.0).reshape(1, -1)
        hidden = after.clamp(0.0, 1.0)
        if window:
            hidden = hidden + (-after - (window - 1.0)).clamp(0.0, 1.0)
        return cls(here, -here + 1.0, hidden.reshape(1, -1) * MASKED)


class DecodeState(_ExecuTorchState):
    """One token: attention as products and softmax over the caches in their own layout.

    No operator waits for a cache to be written, so the whole model is one XNNPACK partition. No
    cache is copied into another layout: it is read as a matrix `[U, K D]`, and each query head has
    its own row with zeros in the columns of the other KV heads. The slot at `length`, where the new
    token belongs, still holds an old row. `_Places.here` is 1 there: it puts the new key's score in
    that slot. The new value is added separately.

    Args:
        given, kinds, longest_layer, scales: as in the base class.
        spreading: of every layer.
    """

    def __init__(
        self,
        given: StateTensors,
        kinds: list[LayerKind],
        longest_layer: int,
        scales: Sequence[CacheScales | None],
        spreading: Sequence[Spreading],
    ) -> None:
        super().__init__(given, kinds, longest_layer, scales)
        self._spreading = spreading
        self._places = {
            layer: _Places.of(
                given.k_cache[layer].shape[1], self._length_of(layer), kinds[layer].window
            )
            for layer in self._starts
        }

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return self._length_of(self._longest).unsqueeze(0)

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        layer, scale = call.layer, self._scales[call.layer]
        spreading = self._spreading[layer]
        pairs = self._new_pairs(call)
        _, heads, _, dim = call.query.shape
        new_key, new_value = (new.reshape(1, -1) for new in (pairs.key, pairs.value))
        width = new_key.shape[1]
        keys = numbers_of(self._given.k_cache[layer]).reshape(-1, width)
        values = numbers_of(self._given.v_cache[layer]).reshape(1, -1, width)
        # linear(x, y) is a product with the rows of y.
        own = (call.query * call.scaling).reshape(heads, dim)
        places = self._places[self._like[layer]]
        queries = functional.linear(own, spreading.spread) * spreading.blocks
        if scale is not None:
            queries = queries * scale.key.reshape(1, -1)
        new_scores = functional.linear(queries, new_key)
        old_scores = functional.linear(queries, keys) * places.elsewhere
        if call.softcap is None:
            scores = old_scores + (new_scores * places.here + places.mask)
        else:
            scores = _capped(old_scores + new_scores * places.here, call.softcap)
            scores = scores + places.mask
        weights = scores.softmax(-1)
        new_weights = functional.linear(weights, places.here)
        old = torch.bmm((weights * places.elsewhere).unsqueeze(0), values).reshape(heads, width)
        found = (old + new_weights * new_value) * spreading.blocks
        if scale is not None:
            found = found * scale.value.reshape(1, -1)
        attended = functional.linear(found, spreading.gathered)
        if call.sinks is not None:
            attended = attended * _share_beside(call.sinks, scores, places)
        return attended.reshape(1, heads, 1, dim)


class PrefillState(_ExecuTorchState):
    """T tokens: attention as products and softmax, all of which XNNPACK takes.

    No operator waits for a cache to be written: the new keys are joined to the old ones, empty
    slots are masked, and the caches are written when all layers are done. So the whole model is one
    XNNPACK partition. On many tokens its products are several times as fast as
    `llama::custom_sdpa`. A learned sink is one more column of the scores, whose value is 0.
    """

    def __init__(
        self,
        given: StateTensors,
        kinds: list[LayerKind],
        longest_layer: int,
        scales: Sequence[CacheScales | None],
    ) -> None:
        super().__init__(given, kinds, longest_layer, scales)
        self._masks: dict[tuple[int, int, bool], torch.Tensor] = {}
        self._joined: dict[int, list[torch.Tensor]] = {}

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return (self._length_of(self._longest) + torch.arange(tokens)).unsqueeze(0)

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        scale = self._scales[call.layer]
        pairs = self._new_pairs(call)
        heads, queries = call.query.shape[1:3]
        _, kv_heads, tokens, dim = pairs.key.shape
        mask = self._mask_of(call.layer, tokens, heads // kv_heads, queries != tokens)
        keys, values = self._joined_with(pairs, call.layer)
        grouped = (call.query * call.scaling).reshape(kv_heads, -1, dim)
        if scale is not None:
            grouped = grouped * scale.key.unsqueeze(1)
        scores = torch.bmm(grouped, keys.transpose(1, 2))
        if call.softcap is not None:
            scores = _capped(scores, call.softcap)
        scores = scores + mask
        if call.sinks is not None:
            each = (
                call.sinks.reshape(kv_heads, -1, 1)
                + torch.arange(queries, dtype=torch.float32) * 0.0
            )
            scores = torch.cat([scores, each.reshape(kv_heads, -1, 1)], dim=-1)
            values = torch.cat([values, torch.zeros(kv_heads, 1, dim)], dim=1)
        attended = torch.bmm(scores.softmax(-1), values)
        if scale is not None:
            attended = attended * scale.value.unsqueeze(1)
        return attended.reshape(1, heads, -1, dim)

    def _joined_with(self, pairs: NewPairs, layer: int) -> list[torch.Tensor]:
        """K and V of a layer's cache and the new ones behind them, `[K, U + T, D]`."""
        if layer not in self._joined:
            caches = self._given.k_cache[layer], self._given.v_cache[layer]
            _, kv_heads, _, dim = pairs.key.shape
            self._joined[layer] = [
                torch.cat(
                    [numbers_of(cache).reshape(-1, kv_heads, dim).transpose(0, 1), new[0]], dim=1
                )
                for cache, new in zip(caches, (pairs.key, pairs.value), strict=True)
            ]
        return self._joined[layer]

    def _mask_of(self, layer: int, tokens: int, groups: int, newest: bool) -> torch.Tensor:
        """Additive mask `[1, R T, U + T]`: 0 where a token sees a slot, else `MASKED`.

        Args:
            layer: any of a kind.
            tokens: T.
            groups: R.
            newest: whether the newest token alone asks, so that R rows are left.
        """
        like = self._like[layer]
        known = like, groups, newest
        if known not in self._masks:
            self._masks[known] = self._mask_for(like, tokens, groups, newest)
        return self._masks[known]

    def _mask_for(self, layer: int, tokens: int, groups: int, newest: bool) -> torch.Tensor:
        """It uses float arithmetic only, which XNNPACK takes. A token sees the slots whose number
        is at most its own. Empty slots get a very large number (`FUTURE`).
        """
        length = self._length_of(layer).to(torch.float32)
        old = torch.arange(self._given.k_cache[layer].shape[1], dtype=torch.float32)
        empty = (old - length + 1.0).clamp(0.0, 1.0)
        times = torch.arange(tokens, dtype=torch.float32)
        new = length + times
        seen = torch.cat([old + FUTURE * empty, new]).reshape(1, 1, -1)
        asking = length + times[-1:] if newest else new
        rows = (asking + torch.zeros(groups, 1)).reshape(1, -1, 1)
        hidden = (rows - seen).clamp(-1.0, 0.0)
        if window := self._kinds[layer].window:
            hidden = hidden + (seen - rows + (window - 1.0)).clamp(-1.0, 0.0)
        return hidden * -MASKED


def _share_beside(sinks: torch.Tensor, scores: torch.Tensor, places: _Places) -> torch.Tensor:
    """What a softmax leaves to the scores `[H, U]` beside each head's sink: `[H, 1]`.

    So the sinks change no weight's place, and no cache gets another row: e^s / (sum e^s + e^sink)
    is softmax(s) times this share.
    """
    with_sinks = torch.cat([scores, sinks.reshape(-1, 1)], dim=-1).softmax(-1)
    # A product with computed rows, which XNNPACK takes only where no constant is joined to them.
    nothing = functional.linear(places.elsewhere, places.here)
    slots = torch.cat([places.here + places.elsewhere, nothing], dim=-1)
    return functional.linear(with_sinks, slots)


def _capped(scores: torch.Tensor, softcap: float) -> torch.Tensor:
    """Scores within -softcap to softcap."""
    return (scores * (1.0 / softcap)).tanh() * softcap
