"""The state in ExecuTorch's operators: caches that are inputs, written in the caller's memory.

Letters: L layers, H query heads, K KV heads, G query heads per KV head, T new tokens, C capacity,
U slots that prefill is given (length + T), D head dimension. Caches have the layout `B C K D`, in
which the first U slots are one piece of memory.
"""

from __future__ import annotations

import torch

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

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        memory, norm = self._given.memory, self._given.memory_norm
        assert memory is not None and norm is not None
        # Slices and reshapes, which XNNPACK takes, instead of memory[layer], which it doesn't.
        kv_heads, dim = norm.shape[1:]
        one_memory = memory.narrow(0, layer, 1).reshape(kv_heads, dim, dim)
        return one_memory, norm.narrow(0, layer, 1).reshape(kv_heads, dim)

    def _write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """K, V `[1, T, K, D]` into the caller's cache, at the slots from `length` on."""
        for new, cache in ((key, self._given.k_cache[layer]), (value, self._given.v_cache[layer])):
            torch._check(self._start + new.shape[1] <= cache.shape[1])
            torch._check(self._start < cache.shape[1])
            torch.ops.llama.update_cache(new, cache, self._start)

    def outputs(self) -> list[torch.Tensor]:
        """Nothing: the caches are changed where they are."""
        return []


class DecodeState(_ExecuTorchState):
    """One token: K, V are written first, then `llama::custom_sdpa` reads the cache in place."""

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
        k_cache, v_cache = self._given.k_cache[layer], self._given.v_cache[layer]
        check_attention(self._capacity, sliding_window, softcap)
        self._write(layer, key.transpose(1, 2), value.transpose(1, 2))
        attended = torch.ops.llama.custom_sdpa(
            query.transpose(1, 2), k_cache, v_cache, self._start, None, 0.0, True, scaling
        )
        return attended.transpose(1, 2)


class PrefillState(_ExecuTorchState):
    """T tokens: attention in products and softmax, all of which XNNPACK takes.

    Nothing in it waits for a cache to be written: the new keys are joined to the old ones, slots
    that hold nothing yet are masked, and the caches are written when all layers are done. So the
    whole model is one XNNPACK partition, and its products are several times as fast as
    `llama::custom_sdpa` on many tokens.
    """

    def __init__(self, given: StateTensors, capacity: int) -> None:
        super().__init__(given, capacity)
        self._new: list[tuple[int, torch.Tensor, torch.Tensor]] = []
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
        self._new.append((layer, key.transpose(1, 2), value.transpose(1, 2)))
        return attended.reshape(1, heads, -1, dim)

    def outputs(self) -> list[torch.Tensor]:
        """Writes the caches, after everything that reads them."""
        for layer, key, value in self._new:
            self._write(layer, key, value)
        return []

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
