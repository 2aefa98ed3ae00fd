"""The codes of an int8 cache as XNNPACK reads and writes them.

XNNPACK's tensors of bytes have one scale, ours have one for each channel (`models.int8_cache`). So
here a code is worth 1: what XNNPACK converts are the codes themselves, and the scales are factors
of the graph. Conversion to codes rounds to the nearest, of two equally near ones to the even one,
as `models.int8_cache.scales.rounded` does. Letters: K KV heads, T new tokens, U slots, D head
dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (registers both)
import torch

from edgeinfinite.models.int8_cache.scales import LARGEST_CODE, LEAST_CODE, CacheScales

_A_STEP = (1.0, 0, LEAST_CODE, LARGEST_CODE, torch.int8)
"""Scale and zero point, which leave a code as it is, and what a byte holds."""


class NewPairs(NamedTuple):
    """K and V of new tokens.

    Args:
        key, value: `[1, K, T, D]` float32 as attention sees them; of an int8 cache its codes.
        written: the same as the caches hold them, `[1, T, K, D]` of their dtype.
    """

    key: torch.Tensor
    value: torch.Tensor
    written: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def of(cls, key: torch.Tensor, value: torch.Tensor, scale: CacheScales | None) -> NewPairs:
        """Of K and V `[1, K, T, D]` float32; `scale` is that of an int8 cache."""
        slots = key.transpose(1, 2), value.transpose(1, 2)
        if scale is None:
            return cls(key, value, slots)
        k_codes, v_codes = codes_of(slots[0], scale.key), codes_of(slots[1], scale.value)
        read_key, read_value = (numbers_of(codes).transpose(1, 2) for codes in (k_codes, v_codes))
        return cls(read_key, read_value, (k_codes, v_codes))


def codes_of(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The nearest codes `[1, T, K, D]` int8 of numbers `[1, T, K, D]`; scale `[K, D]`."""
    return nearest(numbers / scale)


def nearest(steps: torch.Tensor) -> torch.Tensor:
    """The nearest codes, int8, of float32 steps of the same shape."""
    codes: torch.Tensor = torch.ops.quantized_decomposed.quantize_per_tensor.default(
        steps, *_A_STEP
    )
    return codes


def numbers_of(cache: torch.Tensor) -> torch.Tensor:
    """A cache in float32, in the same shape: codes of an int8 cache, else the cache itself."""
    if cache.dtype != torch.int8:
        return cache
    numbers: torch.Tensor = torch.ops.quantized_decomposed.dequantize_per_tensor.default(
        cache, *_A_STEP
    )
    return numbers
