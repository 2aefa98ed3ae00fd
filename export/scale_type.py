"""How a back end stores the scales of a weight's groups."""

from __future__ import annotations

from dataclasses import dataclass

import torch

LEAST = 1e-7
"""A scale for groups of zeros; half precision holds it."""


@dataclass(frozen=True)
class ScaleType:
    """How a back end stores scales.

    Args:
        dtype: float16 or bfloat16.
        signed: whether a scale may be negative.
    """

    dtype: torch.dtype
    signed: bool

    def stored(self, scales: torch.Tensor) -> torch.Tensor:
        """Scales as they are stored, float32, none of them 0."""
        rounded = scales.to(self.dtype).float()
        tiny = rounded.abs() < LEAST
        return torch.where(tiny, LEAST, rounded).to(self.dtype).float()
