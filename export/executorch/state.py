"""The state in ExecuTorch's operators: caches that are inputs, written in the caller's memory.

Letters: L layers, H query heads, K KV heads, G query heads per KV head, T new tokens, C capacity,
U slots that prefill is given (length + T), D head dimension. Caches have the layout `B C K D`, in
which the first U slots are one piece of memory.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from edgeinfinite import EdgeInfiniteError
from edgeinfinite.export.executorch import operators  # noqa: F401  (registers llama::*)
from edgeinfinite.export.graphs import StateTensors

MASKED = -3e4
"""Added to the scores of slots that aren't seen; exp() of it is 0, and XNNPACK's stays finite."""

FUTURE = 1e6
"""Added to the position of a slot that holds nothing yet."""


class _ExecuTorchState:
    """What prefill and decode have in common.

    Args:
        given: the graph's inputs; caches `[1, C or U, K, D]` float32.
        capacity: C.
    """

    def __init__(self, given: StateTensors, capacity: int) -> None:
        self._given = given
        self._capacity = capacity
        # Without a gate there is none, and nothing asks for it.
        self.has_memory: torch.Tensor = given.has_memory  # type: ignore[assignment]
        # The lengths of all layers are equal as long as the geometry is (DESIGN §3).
        self._start = given.length[0].item()
        torch._check(self._start >= 0)
        self._new: list[tuple[torch.Tensor, torch.Tensor]] = []

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        memory, norm = self._given.memory, self._given.memory_norm
        assert memory is not None and norm is not None
        # Slices and reshapes, which XNNPACK takes, instead of memory[layer], which it doesn't.
        kv_heads, dim = norm.shape[1:]
        one_memory = memory.narrow(0, layer, 1).reshape(kv_heads, dim, dim)
        return one_memory, norm.narrow(0, layer, 1).reshape(kv_heads, dim)

    def _write_later(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """Keeps K, V `[1, K, T, D]` of the new tokens until `outputs`."""
        caches = self._given.k_cache[layer], self._given.v_cache[layer]
        self._new += zip((key.transpose(1, 2), value.transpose(1, 2)), caches, strict=True)

    def outputs(self) -> list[torch.Tensor]:
        """Writes the caller's caches, at the slots from `length` on, after all that reads them."""
        for new, cache in self._new:
            torch._check(self._start + new.shape[1] <= cache.shape[1])
            torch._check(self._start < cache.shape[1])
            torch.ops.llama.update_cache(new, cache, self._start)
        return []


class DecodeState(_ExecuTorchState):
    """One token: attention in products and softmax over the caches as they are.

    Nothing in it waits for a cache to be written, so the whole model is one XNNPACK partition, and
    no cache is copied into another layout: it is read as a matrix `[U, K D]`, and a query head has
    a row of its own with zeros at the other KV heads' columns. The slot at `length`, where the new
    token belongs, still holds something old; a 1 in its place (`_here`) puts the new key's score
    there, and the new value is added by itself.

    Args:
        given, capacity: as above.
        blocks: `[H, K D]`, 1 where a query head's KV head is.
        spread: `[K D, D]`, an identity for every KV head.
        gathered: its transpose `[D, K D]`.
    """

    def __init__(
        self,
        given: StateTensors,
        capacity: int,
        *,
        blocks: torch.Tensor,
        spread: torch.Tensor,
        gathered: torch.Tensor,
    ) -> None:
        super().__init__(given, capacity)
        self._blocks, self._spread, self._gathered = blocks, spread, gathered
        # In float arithmetic, all of which XNNPACK takes.
        slots = torch.arange(given.k_cache[0].shape[1], dtype=torch.float32)
        after = slots - given.length[:1].to(torch.float32)
        self._here = (-after * after + 1.0).clamp(0.0, 1.0).reshape(1, -1)
        self._elsewhere = -self._here + 1.0
        self._mask = after.clamp(0.0, 1.0).reshape(1, -1) * MASKED

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return self._given.length[:1].unsqueeze(0)

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
        check_attention(self._capacity, sliding_window, softcap)
        self._write_later(layer, key, value)
        _, heads, _, dim = query.shape
        new_key, new_value = (new.reshape(1, -1) for new in (key, value))
        width = new_key.shape[1]
        keys = self._given.k_cache[layer].reshape(-1, width)
        values = self._given.v_cache[layer].reshape(1, -1, width)
        # linear(x, y) is a product with the rows of y.
        own = (query * scaling).reshape(heads, dim)
        queries = functional.linear(own, self._spread) * self._blocks
        new_scores = functional.linear(queries, new_key)
        old_scores = functional.linear(queries, keys) * self._elsewhere
        weights = (old_scores + (new_scores * self._here + self._mask)).softmax(-1)
        new_weights = functional.linear(weights, self._here)
        old = torch.bmm((weights * self._elsewhere).unsqueeze(0), values).reshape(heads, width)
        found = (old + new_weights * new_value) * self._blocks
        return functional.linear(found, self._gathered).reshape(1, heads, 1, dim)


class PrefillState(_ExecuTorchState):
    """T tokens: attention in products and softmax, all of which XNNPACK takes.

    Nothing in it waits for a cache to be written: the new keys are joined to the old ones, slots
    that hold nothing yet are masked, and the caches are written when all layers are done. So the
    whole model is one XNNPACK partition, and its products are several times as fast as
    `llama::custom_sdpa` on many tokens.
    """

    def __init__(self, given: StateTensors, capacity: int) -> None:
        super().__init__(given, capacity)
        self._mask: torch.Tensor | None = None

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        return (self._given.length[:1] + torch.arange(tokens)).unsqueeze(0)

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
        k_cache, v_cache = self._given.k_cache[layer], self._given.v_cache[layer]
        check_attention(self._capacity, sliding_window, softcap)
        _, heads, tokens, dim = query.shape
        kv_heads = key.shape[1]
        if self._mask is None:
            self._mask = self._mask_for(k_cache.shape[1], tokens, heads // kv_heads)
        joined = [
            torch.cat([cache.reshape(-1, kv_heads, dim).transpose(0, 1), new[0]], dim=1)
            for cache, new in ((k_cache, key), (v_cache, value))
        ]
        keys, values = joined
        grouped = (query * scaling).reshape(kv_heads, -1, dim)
        scores = torch.bmm(grouped, keys.transpose(1, 2)) + self._mask
        attended = torch.bmm(scores.softmax(-1), values)
        self._write_later(layer, key, value)
        return attended.reshape(1, heads, -1, dim)

    def _mask_for(self, slots: int, tokens: int, groups: int) -> torch.Tensor:
        """Mask `[1, G T, U + T]` to be added: 0 where a token sees a slot, else `MASKED`.

        In float arithmetic, all of which XNNPACK takes: positions of the slots against positions
        of the tokens, slots that hold nothing yet being far in the future.
        """
        length = self._given.length[:1].to(torch.float32)
        old = torch.arange(slots, dtype=torch.float32)
        empty = (old - length + 1.0).clamp(0.0, 1.0)
        new = length + torch.arange(tokens, dtype=torch.float32)
        seen = torch.cat([old + FUTURE * empty, new]).reshape(1, 1, -1)
        rows = (new + torch.zeros(groups, 1)).reshape(1, -1, 1)
        return (rows - seen).clamp(-1.0, 0.0) * -MASKED


def check_attention(capacity: int, sliding_window: int | None, softcap: float | None) -> None:
    """Refuses what this back end's attention can't do.

    Raises:
        EdgeInfiniteError: scores are capped, or a window is shorter than the cache.
    """
    if softcap is not None:
        raise EdgeInfiniteError(
            "the back end executorch can't cap attention scores (softcap); use --backend onnx"
        )
    if sliding_window is not None and sliding_window < capacity:
        raise EdgeInfiniteError(
            f"the back end executorch has no sliding attention window ({sliding_window} slots, the "
            f"cache has {capacity}); choose shorter lengths or use --backend onnx"
        )
