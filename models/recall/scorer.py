"""The retention scorer: how much later text will need a cached pair (docs/develop/recall.md).

Letters: K KV heads, n pairs, D head dimension, F hidden width.
"""

from __future__ import annotations

import torch
from torch import nn

HIDDEN_WIDTH = 32
REPEATS_WIDTH = 8
"""F of `RetentionScorer.repeats`: with 32 answers lose as much, and the file is larger
(experiments/recall.md)."""

KEEP_ALL = -1e4
"""A keep threshold below every score: every pair may stay for its rank. Exact in float16."""

_LEAST_DEVIATION = 1e-3


class PairNetwork(nn.Module):
    """An MLP 2D -> F -> 1 for each KV head of one layer, on standardised inputs.

    It sees the un-rotated key and the value, so what it says of a pair doesn't depend on the
    position in the cache.

    Args:
        kv_heads: K.
        head_dim: D.
        width: F.
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, kv_heads: int, head_dim: int, width: int = HIDDEN_WIDTH) -> None:
        super().__init__()
        inputs = 2 * head_dim
        self.register_buffer("mean", torch.zeros(kv_heads, 1, inputs))
        self.register_buffer("deviation", torch.ones(kv_heads, 1, inputs))
        self.w1 = nn.Parameter(torch.randn(kv_heads, inputs, width) * inputs**-0.5)
        self.b1 = nn.Parameter(torch.zeros(kv_heads, 1, width))
        self.w2 = nn.Parameter(torch.randn(kv_heads, width, 1) * width**-0.5)
        self.b2 = nn.Parameter(torch.zeros(kv_heads, 1, 1))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """K, D, F."""
        kv_heads, inputs, width = self.w1.shape
        return kv_heads, inputs // 2, width

    def forward(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Scores pairs; greater is more worth keeping.

        Args:
            key: `[..., K, n, D]` before RoPE.
            value: `[..., K, n, D]`.

        Returns:
            `[..., K, n]` float32.
        """
        # Standardising is linear, so W1 and b1 absorb it at no cost per pair.
        w1 = self.w1 / self.deviation.transpose(-1, -2)
        b1 = self.b1 - self.mean @ w1
        dim = key.shape[-1]
        hidden = key.float() @ w1[:, :dim] + value.float() @ w1[:, dim:] + b1
        return (torch.relu(hidden) @ self.w2 + self.b2).squeeze(-1)


class RetentionScorer(PairNetwork):
    """How much later text will need a pair: a network for each KV head of one layer.

    Over ordinary text, the scores of all heads have the same mean and spread (`standardise`), so
    that they can be pooled (`ranking.pooled_scores`).

    Args:
        kv_heads, head_dim, width: see `PairNetwork`.
    """

    head_weights: torch.Tensor
    """`[K, 1]` float32: a head's weight in the pooled score; 1 until fitted."""
    keep_threshold: torch.Tensor
    """`[K, 1]` float32: pairs that rank no higher stay only while they are new. Few tokens of
    ordinary text exceed it. `KEEP_ALL` until fitted."""
    retrieval: torch.Tensor
    """`[K, 1]` float32: 1 for retrieval heads, which score; 0 for streaming heads, which keep the
    newest pairs (DuoAttention's terms, arXiv 2410.10819)."""
    retrieval_heads: int
    """How many heads score."""
    repeats: PairNetwork | None
    """Estimates the logarithm of the attention that a pair gets while the model repeats the text
    (KVzip, arXiv 2505.23416). It ranks the pairs that the score leaves, where a head has slots for
    them; None: the newest of those stay."""

    def __init__(self, kv_heads: int, head_dim: int, width: int = HIDDEN_WIDTH) -> None:
        super().__init__(kv_heads, head_dim, width)
        self.repeats = None
        self.register_buffer("head_weights", torch.ones(kv_heads, 1))
        self.register_buffer("keep_threshold", torch.full((kv_heads, 1), KEEP_ALL))
        self.register_buffer("retrieval", torch.ones(kv_heads, 1), persistent=False)
        self.retrieval_heads = kv_heads

    @torch.no_grad()
    def make_streaming(self, heads: torch.Tensor) -> None:
        """Makes some KV heads streaming heads: all their scores are equal, so the newest pairs
        stay.

        `carry` breaks ties by age, so their slots act as a longer window, as in StreamingLLM.

        Args:
            heads: `[K]` bool.
        """
        self.w2[heads] = 0
        self.b2[heads] = 0
        self.find_retrieval_heads()

    @torch.no_grad()
    def standardise(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Scales the scores so that each head has mean 0 and deviation 1 over these pairs.

        Args:
            key: `[K, n, D]` before RoPE.
            value: `[K, n, D]`.
        """
        score = self(key, value)
        mean, deviation = score.mean(-1)[:, None, None], score.std(-1)[:, None, None]
        deviation = deviation.clamp(min=_LEAST_DEVIATION)
        self.w2.copy_(self.w2 / deviation)
        self.b2.copy_((self.b2 - mean) / deviation)

    def add_repeats(self, width: int) -> PairNetwork:
        """Adds `repeats`, with random weights, and returns it."""
        kv_heads, dim, _ = self.sizes
        self.repeats = PairNetwork(kv_heads, dim, width)
        return self.repeats

    def find_retrieval_heads(self) -> None:
        """Updates `retrieval` from the weights; call it after loading them."""
        self.retrieval.copy_(self.w2.detach().flatten(1).any(1, keepdim=True))
        self.retrieval_heads = int(self.retrieval.sum())

    @property
    def streams(self) -> bool:
        """Whether no head of this layer scores, so that graphs compute no scores."""
        return not self.retrieval_heads
