"""Simulates an int8 KV cache with a scale per vector, to measure what it costs in quality.

An artifact's int8 cache has a scale per channel (`models.int8_cache`); --artifact measures it. Here
each key and value vector is D signed bytes and one float16 scale, the largest magnitude / 127. The
reference computes with the dequantized numbers. Rounding twice changes nothing, but a key that
moves to another slot is rotated and rounded again, as in a cache of keys after RoPE.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.state import TensorState
from edgeinfinite.runtime_py.session.state import State

_SCALE_BYTES = 2


def round_to_int8(vectors: torch.Tensor) -> torch.Tensor:
    """Rounds to int8 with one scale per vector; shape `[..., D]`, any float dtype."""
    floats = vectors.float()
    scale = (floats.abs().amax(dim=-1, keepdim=True) / 127).half().float()
    steps = torch.where(scale > 0, floats / scale, 0.0)
    return (steps.round().clamp(-127, 127) * scale).to(vectors.dtype)


class Int8TensorState(TensorState):
    """The reference state, with float32 caches whose K and V are rounded when written."""

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        key, value = round_to_int8(call.key), round_to_int8(call.value)
        return super().attend(replace(call, key=key, value=value))

    def round_again(self) -> None:
        """Rounds again after keys were moved to other slots."""
        for cache in (*self.k_cache, *self.v_cache):
            cache[:] = round_to_int8(cache[:])


def int8_state_bytes(state: State) -> int:
    """Bytes of this state with int8 in place of float32 K and V."""
    total = 0
    for name, array in state.arrays.items():
        if name.startswith(("k_cache", "v_cache")):
            numbers = array.nbytes // array.itemsize
            total += numbers + _SCALE_BYTES * (numbers // array.shape[-1])
        else:
            total += array.nbytes
    return total
