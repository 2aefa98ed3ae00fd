"""The retention scorer: how much later text will ask for a cached pair (DESIGN §2b).

Letters: K KV heads, n pairs, D head dimension, F hidden width.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

HIDDEN_WIDTH = 32

NEIGHBOURS = 8
"""Pairs on either side that count towards a pair's rank: words and sentences stay together.
Measured with 0, 2, 4 and 8 in docs/recall.md."""

NEIGHBOURS_SHARE = 0.5
"""How much of the rank is the best score among the neighbours, the rest is the pair's own."""


class RetentionScorer(nn.Module):
    """An MLP 2D -> F -> 1 of one layer, apart for each KV head, on standardised inputs.

    It sees the un-rotated key and the value, so its answer depends on the pair alone and not on
    where in the cache it stands: the score needs no state of its own.

    Args:
        kv_heads: K.
        head_dim: D.
        width: F.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    by_age = False
    """Whether all scores of this layer are alike (`notice_age`): graphs needn't compute them."""

    def __init__(self, kv_heads: int, head_dim: int, width: int = HIDDEN_WIDTH) -> None:
        super().__init__()
        inputs = 2 * head_dim
        self.register_buffer("mean", torch.zeros(kv_heads, 1, inputs))
        self.register_buffer("deviation", torch.ones(kv_heads, 1, inputs))
        self.w1 = nn.Parameter(torch.randn(kv_heads, inputs, width) * inputs**-0.5)
        self.b1 = nn.Parameter(torch.zeros(kv_heads, 1, width))
        self.w2 = nn.Parameter(torch.randn(kv_heads, width, 1) * width**-0.5)
        self.b2 = nn.Parameter(torch.zeros(kv_heads, 1, 1))

    def forward(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Scores, greater for what is more worth keeping.

        Args:
            key: `[..., K, n, D]` before RoPE.
            value: `[..., K, n, D]`.

        Returns:
            `[..., K, n]` float32.
        """
        # Standardising is linear: inside W1 and b1 it costs nothing per pair.
        w1 = self.w1 / self.deviation.transpose(-1, -2)
        b1 = self.b1 - self.mean @ w1
        dim = key.shape[-1]
        hidden = key.float() @ w1[:, :dim] + value.float() @ w1[:, dim:] + b1
        return (torch.relu(hidden) @ self.w2 + self.b2).squeeze(-1)

    @torch.no_grad()
    def rank_by_age(self, heads: torch.Tensor) -> None:
        """Makes the scores of some KV heads all alike, so that the newest pairs stay.

        `carry` breaks ties by age: these heads' slots are a longer window, StreamingLLM's.

        Args:
            heads: `[K]` bool.
        """
        self.w2[heads] = 0
        self.b2[heads] = 0

    def notice_age(self) -> None:
        """Once weights are loaded: in many a layer no head ranks by score."""
        self.by_age = not bool(self.w2.any())

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """What decides over the recall slots: the score, and the best one nearby.

        Args:
            key: `[1, K, n, D]` before RoPE, in the order of the text.
            value: `[1, K, n, D]`.

        Returns:
            `[1, K, n]` float32.
        """
        if self.by_age:
            return torch.zeros(key.shape[:-1])
        own = self(key, value)
        nearby = functional.max_pool1d(own, 2 * NEIGHBOURS + 1, 1, NEIGHBOURS)
        return (1 - NEIGHBOURS_SHARE) * own + NEIGHBOURS_SHARE * nearby
