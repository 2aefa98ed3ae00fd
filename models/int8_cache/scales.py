"""An int8 KV cache: signed bytes, and for each channel the number that one step is worth.

    code = round(x / s), limited to what a byte holds;    x ≈ code · s

onnxruntime's GroupQueryAttention reads and writes such caches. The scales s are constants of the
artifact (`measure.py`). Writing what was read changes nothing, but a key that moves to another
position is rotated and rounded again. Letters: K KV heads, C capacity, n slots, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from edgeinfinite.artifact.tensors import Heads
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.trained_file import load_into, read_layers

LEAST_CODE, LARGEST_CODE = -128, 127


class CacheScales(nn.Module):
    """What one step of each channel of a layer's K and V is worth.

    Args:
        key, value: `[K, D]` float32, above 0.
    """

    key: torch.Tensor
    value: torch.Tensor

    def __init__(self, key: torch.Tensor, value: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("key", key)
        self.register_buffer("value", value)


class ScaledCache:
    """int8 codes that are read and written as the numbers they stand for.

    It has what compression and attention use of a tensor: slots by slice and by index.

    Args:
        codes: `[1, K, C, D]` int8, changed by writing. They may be float32: what is written then
            isn't rounded.
        scale: `[K, D]` float32.
    """

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor) -> None:
        self.codes = codes
        self._scale = scale

    @property
    def shape(self) -> torch.Size:
        """Of the codes."""
        return self.codes.shape

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Float32 numbers of some slots, `[1, K, n, D]` for an index `[:, :, slots]`."""
        return self._numbers(self.codes[index])

    def __setitem__(self, index: Any, numbers: torch.Tensor) -> None:
        rounds = self.codes.dtype == torch.int8
        self.codes[index] = (rounded if rounds else in_steps)(numbers, self._scale)

    def index_select(self, axis: int, rows: torch.Tensor) -> torch.Tensor:
        """Float32 numbers of the slots `rows`, for axis 2."""
        return self._numbers(self.codes.index_select(axis, rows))

    def moved(self, move: Callable[[torch.Tensor], torch.Tensor]) -> ScaledCache:
        """The same channels of other slots.

        Args:
            move: makes codes `[1, K, n, D]` of codes, by choosing or ordering slots.
        """
        return ScaledCache(move(self.codes), self._scale)

    def _numbers(self, codes: torch.Tensor) -> torch.Tensor:
        return codes.float() * self._scale.unsqueeze(1)


Cache = torch.Tensor | ScaledCache


def as_numbers(cache: Cache) -> torch.Tensor:
    """What a cache stands for: float32 numbers of codes, a tensor as it is."""
    return cache[:] if isinstance(cache, ScaledCache) else cache


def moved(cache: Cache, move: Callable[[torch.Tensor], torch.Tensor]) -> Cache:
    """Slots that are chosen or put in another order; codes stay codes, so nothing is rounded.

    Args:
        cache: `[1, K, C, D]`.
        move: makes `[1, K, n, D]` of it.
    """
    return cache.moved(move) if isinstance(cache, ScaledCache) else move(cache)


def rounded(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The nearest codes, of two equally near ones the even one.

    Args:
        numbers: `[1, K, n, D]`, any float dtype.
        scale: `[K, D]` float32.

    Returns:
        `[1, K, n, D]` int8.
    """
    steps = torch.round(in_steps(numbers, scale))
    return steps.clamp(LEAST_CODE, LARGEST_CODE).to(torch.int8)


def in_steps(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """How many steps a number is worth, `[1, K, n, D]` float32; arguments as of `rounded`."""
    return numbers.float() / scale.unsqueeze(1)


def scaled_caches(
    k_cache: Sequence[torch.Tensor],
    v_cache: Sequence[torch.Tensor],
    scales: Sequence[CacheScales | None],
) -> tuple[list[Cache], list[Cache]]:
    """All layers' caches as numbers: as they are where a layer has no scales."""
    keys: list[Cache] = []
    values: list[Cache] = []
    for key, value, scale in zip(k_cache, v_cache, scales, strict=True):
        keys.append(key if scale is None else ScaledCache(key, scale.key))
        values.append(value if scale is None else ScaledCache(value, scale.value))
    return keys, values


def load_cache_scales(
    path: Path, layers: int, kv_heads: int, head_dim: int, heads: Sequence[Heads] = ()
) -> list[CacheScales]:
    """Reads the scales of all layers, as `trained_file.save_layers` writes them.

    Args:
        path: the file.
        layers, kv_heads, head_dim: L, K, D.
        heads: K and D of every layer, where they differ.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, of another backbone, or holds NaN
            or a scale that isn't above 0.
    """
    found = []
    sizes = heads or [Heads(kv_heads, head_dim)] * layers
    for size, tensors in zip(sizes, read_layers(path, layers, "cache scales"), strict=True):
        scales = CacheScales(*torch.zeros(2, *size))
        load_into(scales, tensors, path, "cache scales")
        if not (scales.key.min() > 0 and scales.value.min() > 0):
            raise EdgeInfiniteError(f"cache scales file {path} holds a scale that isn't above 0")
        found.append(scales)
    return found
