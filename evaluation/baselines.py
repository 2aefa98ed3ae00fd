"""Other ways to rank pairs for the recall slots, as baselines for the trained scorer.

Each replaces the scorer in `carry_layer`, with the same slots, window and bytes of state. Letters:
K KV heads, n pairs, N segment, D head dimension.
"""

from __future__ import annotations

import torch
from torch import nn

from edgeinfinite.models.memory.compressive import compress
from edgeinfinite.models.memory.feature_map import elu_features

_EPSILON = 1e-6


class RandomSlots(nn.Module):
    """Pseudorandom scores computed from the pair: every token is equally likely to be kept."""

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """`[..., K, n]` of pairs `[..., K, n, D]`; from the value alone, because moved keys are
        rounded.
        """
        del key
        weights = torch.arange(1, value.shape[-1] + 1, dtype=torch.float64).sqrt()
        return ((value.double() @ weights) * 1e4).sin().float()


class KeyDiff(nn.Module):
    """Keeps keys that are unlike the others: minus the cosine with their mean (2504.15364)."""

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """`[..., K, n]` of pairs `[..., K, n, D]`."""
        del value
        directions = nn.functional.normalize(key.float(), dim=-1)
        anchor = directions.mean(-2, keepdim=True)
        return -nn.functional.cosine_similarity(directions, anchor, dim=-1)


class Lola(nn.Module):
    """Keeps what the linear memory recalls worst: ‖σ(k) M / σ(k) z − v‖ (LoLA, 2505.23666).

    M and z sum over every pair that has left the window, with its key before RoPE.
    """

    def __init__(self, kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.memory = torch.zeros(kv_heads, head_dim, head_dim)
        self.norm = torch.zeros(kv_heads, head_dim)

    def fold(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Adds pairs `[K, N, D]` that leave the window; makes new tensors, because old ones may be
        saved.
        """
        self.memory, self.norm = compress(key, value, self.memory, self.norm)

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """`[..., K, n]` of pairs `[..., K, n, D]`."""
        features = elu_features(key.float())
        read = features @ self.memory / (features @ self.norm.unsqueeze(-1) + _EPSILON)
        return (read - value.float()).norm(dim=-1)


BASELINES = ("random", "keydiff", "lola")


def baseline_scorer(method: str, kv_heads: int, head_dim: int) -> nn.Module:
    """The scorer of one layer for a method of `BASELINES`."""
    if method == "random":
        return RandomSlots()
    return KeyDiff() if method == "keydiff" else Lola(kv_heads, head_dim)
