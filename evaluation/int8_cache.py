"""What an int8 KV cache would cost in quality, measured before any back end has one.

Each key and each value of a token and KV head is held as D signed bytes and one float16 scale, the
largest magnitude / 127. The reference computes with the numbers that such a cache gives back. What
is already on its grid stays where it is; a key that moves to another slot is turned and rounded
again, as in a cache that holds keys after RoPE.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from edgeinfinite.models.attention_call import AttentionCall
from edgeinfinite.models.state import TensorState
from edgeinfinite.runtime_py.state import State

_SCALE_BYTES = 2


def round_to_int8(vectors: torch.Tensor) -> torch.Tensor:
    """The nearest numbers that int8 with a scale a vector holds; shape `[..., D]`, any float."""
    floats = vectors.float()
    scale = (floats.abs().amax(dim=-1, keepdim=True) / 127).half().float()
    steps = torch.where(scale > 0, floats / scale, 0.0)
    return (steps.round().clamp(-127, 127) * scale).to(vectors.dtype)


class Int8TensorState(TensorState):
    """The reference state (caches in float32) with K and V rounded as they are written."""

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        key, value = round_to_int8(call.key), round_to_int8(call.value)
        return super().attend(replace(call, key=key, value=value))

    def round_again(self) -> None:
        """After keys were turned to other slots."""
        for cache in (*self.k_cache, *self.v_cache):
            cache.copy_(round_to_int8(cache))


def int8_state_bytes(state: State) -> int:
    """Bytes of a state whose K and V, float32 here, are held in int8."""
    total = 0
    for name, array in state.arrays.items():
        if name.startswith(("k_cache", "v_cache")):
            total += array.size + _SCALE_BYTES * (array.size // array.shape[-1])
        else:
            total += array.nbytes
    return total
