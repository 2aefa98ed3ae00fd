"""Replaces RoPE's eleven operators by one node, RotaryEmbedding.

transformers' modelling code calls a function of its own module, `apply_rotary_pos_emb`. While the
graph is traced, the fused function replaces it, if both compute the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.onnx import operators
from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.head_groups import packed, unpacked
from edgeinfinite.models.recall.rotary import RotaryTable

_NAME = "apply_rotary_pos_emb"
_Rotate = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@contextmanager
def fused_rotary(model: PreTrainedModel) -> Iterator[bool]:
    """Inside, the model's attention rotates Q and K with the fused operator.

    Yields:
        Whether it does; False if the model doesn't rotate by halves.
    """
    layer = attention_layers(model)[0]
    module: Any = sys.modules[type(layer).__module__]
    original = getattr(module, _NAME, None)
    if original is None or not _rotates_by_halves(original):
        yield False
        return
    setattr(module, _NAME, _fused)
    try:
        yield True
    finally:
        setattr(module, _NAME, original)


class FusedRotaryTable(RotaryTable):
    """Rotates keys with the fused operator, for tracing; same equations as the parent."""

    def shift_back(self, key: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """See `RotaryTable.shift_back`; key `[1, K, n, D]`, slots `[n]` or `[1, K, n]`."""
        if self.cos is None or self.sin is None:
            return key
        # If each head has its own distances, the heads go on the operator's batch axis.
        apart = slots.dim() > 1
        x, rows = (key.transpose(0, 1), slots[0]) if apart else (key, slots.unsqueeze(0))
        # The inverse rotation: sin(-x) = -sin(x).
        turned = operators.rotary(x.float(), rows, self.cos, -self.sin, heads=x.shape[1])
        turned = turned.to(key.dtype)
        return turned.transpose(0, 1) if apart else turned


def _fused(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """q `[1, H, T, D]`, k `[1, K, T, D]`; cos and sin `[1, T, R]`, both halves alike."""
    return _one(q, cos, sin), _one(k, cos, sin)


def _one(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = cos.shape[-1] // 2
    start = torch.zeros(1, dtype=torch.int64)
    turned = operators.rotary(
        packed(x), start, cos[0, :, :half], sin[0, :, :half], heads=x.shape[1]
    )
    return unpacked(turned, x.shape[1])


def _rotates_by_halves(function: Callable[..., Any]) -> bool:
    """Compares the model's function with what the operator computes."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    q, k, angle = random(1, 4, 3, 8), random(1, 2, 3, 8), random(1, 3, 4).repeat(1, 1, 2)
    cos, sin = angle.cos(), angle.sin()
    try:
        results = function(q, k, cos, sin)
    except (TypeError, RuntimeError):  # another signature: another kind of RoPE
        return False
    return all(
        torch.allclose(result, _reference(x, cos, sin), atol=1e-5)
        for x, result in zip((q, k), results, strict=True)
    )


def _reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos.unsqueeze(1) + torch.cat((-second, first), -1) * sin.unsqueeze(1)
