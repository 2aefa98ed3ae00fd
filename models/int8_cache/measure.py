"""Measures what the channels of K and V range over, for the scales of an int8 cache.

Letters: L layers, K KV heads, n tokens, D head dimension, R rotated dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attention_layers, config_of
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.int8_cache.scales import LARGEST_CODE, CacheScales
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.state import TensorState

MEASURED_TOKENS = 2048
"""Read to learn the ranges."""

_CHUNK = 256
_LEAST_TOKENS = 64
_LEAST_SCALE = 1e-6
"""A channel that is always 0 gets it."""


def add_cache_scales(model: PreTrainedModel, tokens: Sequence[int]) -> list[CacheScales]:
    """Gives every attention layer of an attached model the scales that a text asks for.

    A channel's largest magnitude is worth 127 steps. Two channels that RoPE turns into each other
    take the largest length of the pair, which no rotation exceeds.

    Args:
        model: attached, float32 or stored in half precision, on the CPU.
        tokens: of an ordinary text; the first `MEASURED_TOKENS` count.

    Returns:
        The scales, by layer.

    Raises:
        EdgeInfiniteError: the text is too short, or K or V isn't finite.
    """
    if len(tokens) < _LEAST_TOKENS:
        raise EdgeInfiniteError(
            f"the text has {len(tokens)} tokens, the scales of an int8 cache need at least "
            f"{_LEAST_TOKENS}; give a longer one with --calibrate"
        )
    layers = attention_layers(model)
    state = _read(model, tokens[: min(MEASURED_TOKENS, architecture_of(model).positions)])
    moved = rotary_tables(model, 2) if config_of(model).geometry.policy == "carry" else None
    for index, layer in enumerate(layers):
        keys, values = state.k_cache[index][:], state.v_cache[index][:].abs()
        largest = moved[index].reach(keys) if moved else keys.abs()
        scales = [of.amax((0, 2)) for of in (largest, values)]
        if not all(torch.isfinite(scale).all() for scale in scales):
            raise EdgeInfiniteError(
                f"K or V of layer {index} isn't finite, so an int8 cache can't hold it; export "
                "with --cache-type float32"
            )
        layer.cache_scales = CacheScales(
            *((scale / LARGEST_CODE).clamp(min=_LEAST_SCALE) for scale in scales)
        )
    return [layer.cache_scales for layer in layers]


def _read(model: PreTrainedModel, tokens: Sequence[int]) -> TensorState:
    """The state after tokens, in caches that hold all of them in float32."""
    facts = architecture_of(model)
    count, heads, size = len(facts.layers), facts.kv_heads, facts.head_dim
    caches = [(1, of.kv_heads, len(tokens), of.head_dim) for of in facts.every_heads]
    state = TensorState(
        length=torch.zeros(count, dtype=torch.int64),
        k_cache=[torch.zeros(shape) for shape in caches],
        v_cache=[torch.zeros(shape) for shape in caches],
        memory=torch.zeros(count, heads, size, size),
        memory_norm=torch.zeros(count, heads, size),
        has_memory=torch.zeros(1),
        recurrent=[torch.zeros(tensor.shape) for tensor in facts.recurrent],
    )
    with torch.inference_mode():
        for chunk in torch.tensor([list(tokens)]).split(_CHUNK, dim=1):
            run_tokens(model, chunk, state)
            state.length += chunk.shape[1]
    return state
