"""The retention scorer: how much later text will ask for a cached pair (DESIGN §2b).

Letters: K KV heads, n pairs, D head dimension, F hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import nn
from torch.nn import functional

HIDDEN_WIDTH = 32

NEIGHBOURS = 8
"""Pairs on either side that count towards a pair's rank: words and sentences stay together.
Measured with 0, 2, 4 and 8 in docs/recall.md."""

NEIGHBOURS_SHARE = 0.5
"""How much of the rank is the best score among the neighbours, the rest is the pair's own."""

AGREEMENT_SHARE = 0.8
"""How much of a pair's score is what all heads that score think of its token, the rest is the
head's own opinion. Measured with others in docs/recall.md."""


EVERYTHING = -1e4
"""As `worth_keeping`: every pair stays for its rank. Half precision holds it exactly."""

_LEAST_DEVIATION = 1e-3


class RetentionScorer(nn.Module):
    """An MLP 2D -> F -> 1 of one layer, apart for each KV head, on standardised inputs.

    It sees the un-rotated key and the value, so its answer depends on the pair alone and not on
    where in the cache it stands. Scores of the heads are alike in mean and spread over ordinary
    text (`standardise`), so that they can be averaged (`agreed`).

    Args:
        kv_heads: K.
        head_dim: D.
        width: F.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    votes: torch.Tensor
    """`[K, 1]` float32: how much a head counts in the common opinion; 1 until that is fitted."""
    worth_keeping: torch.Tensor
    """`[K, 1]` float32: pairs that rank no higher stay only for being new; what few tokens of
    ordinary text exceed, `EVERYTHING` until that is fitted."""
    scoring: torch.Tensor
    """`[K, 1]` float32: 1 for heads that score, 0 for those that keep what is newest."""
    voters: int
    """How many heads score."""

    def __init__(self, kv_heads: int, head_dim: int, width: int = HIDDEN_WIDTH) -> None:
        super().__init__()
        inputs = 2 * head_dim
        self.register_buffer("mean", torch.zeros(kv_heads, 1, inputs))
        self.register_buffer("deviation", torch.ones(kv_heads, 1, inputs))
        self.register_buffer("votes", torch.ones(kv_heads, 1))
        self.register_buffer("worth_keeping", torch.full((kv_heads, 1), EVERYTHING))
        self.register_buffer("scoring", torch.ones(kv_heads, 1), persistent=False)
        self.voters = kv_heads
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
        self.notice_age()

    @torch.no_grad()
    def standardise(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Scales the scores so that over these pairs every head's have mean 0 and deviation 1.

        Args:
            key: `[K, n, D]` before RoPE.
            value: `[K, n, D]`.
        """
        score = self(key, value)
        mean, deviation = score.mean(-1)[:, None, None], score.std(-1)[:, None, None]
        deviation = deviation.clamp(min=_LEAST_DEVIATION)
        self.w2.copy_(self.w2 / deviation)
        self.b2.copy_((self.b2 - mean) / deviation)

    def notice_age(self) -> None:
        """Once weights are loaded: in many a layer no head ranks by score."""
        self.scoring.copy_(self.w2.detach().flatten(1).any(1, keepdim=True))
        self.voters = int(self.scoring.sum())

    @property
    def by_age(self) -> bool:
        """Whether no head of this layer scores: graphs needn't compute anything."""
        return not self.voters


def agreed(own: Sequence[torch.Tensor], scorers: Sequence[RetentionScorer]) -> list[torch.Tensor]:
    """What is kept of the scores of n tokens: a head's own, and what all that score think together.

    A head sees of a token what it needs itself. Whether the token belongs to something that will be
    asked for shows in many heads, in each with noise of its own: `votes` weigh them.

    Args:
        own: scores `[1, K, n]` of the same n tokens, for each layer in which heads score.
        scorers: of these layers.

    Returns:
        For each of these layers `[1, K, n]`, 0 in heads that keep what is newest.
    """
    # One after the other: XNNPACK joins no more than five tensors at a time.
    votes = [(o * s.votes).sum(1, keepdim=True) for o, s in zip(own, scorers, strict=True)]
    common = reduce(torch.add, votes) / sum(scorer.voters for scorer in scorers)
    return [
        scorer.scoring * ((1 - AGREEMENT_SHARE) * score + AGREEMENT_SHARE * common)
        for score, scorer in zip(own, scorers, strict=True)
    ]


def with_neighbours(score: torch.Tensor) -> torch.Tensor:
    """What decides over the recall slots: a pair's score, and the best one nearby.

    Args:
        score: `[1, K, n]`, in the order of the text.
    """
    nearby = functional.max_pool1d(score, 2 * NEIGHBOURS + 1, 1, NEIGHBOURS)
    return (1 - NEIGHBOURS_SHARE) * score + NEIGHBOURS_SHARE * nearby
