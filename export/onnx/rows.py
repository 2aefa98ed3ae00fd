"""Heads as rows, which the operators of attention and rotation read, and back.

Letters: B batch, T new tokens, D head dimension.
"""

from __future__ import annotations

import torch


def packed(x: torch.Tensor) -> torch.Tensor:
    """`[B, heads, T, D]` as rows `[B, T, heads * D]`."""
    return x.transpose(1, 2).flatten(2)


def unpacked(x: torch.Tensor, heads: int) -> torch.Tensor:
    """`[B, T, heads * D]` as `[B, heads, T, D]`."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)
