"""Which heads are retrieval heads: few are, and only they need slots that reach far back.

DuoAttention (arXiv 2410.10819) finds them by training. Here they are the heads that pay most
attention to planted facts when these are asked for.

Letters: L layers, K KV heads, n pairs.
"""

from __future__ import annotations

import torch

from edgeinfinite.training.scorer.pairs import Pairs


def planted_attention(pairs: Pairs) -> torch.Tensor:
    """Attention paid to the tokens of planted facts, `[L, K]`: mean of the largest weights.

    0 for all heads where no facts were planted.
    """
    largest = pairs.paid["largest"].exp() * pairs.planted
    return largest.sum(-1) / max(1, int(pairs.planted.sum()))


def retrieval_heads(pairs: Pairs, share: float) -> list[tuple[int, int]]:
    """The heads that pay most to planted facts; all heads where no facts were planted.

    Args:
        pairs: what was watched.
        share: of the heads of all layers, at least one of them.

    Returns:
        Layer and KV head of each, those that pay most first.
    """
    paid = planted_attention(pairs)
    return [divmod(head, paid.shape[1]) for head in _most(paid.flatten(), share)]


def retrieval_layers(pairs: Pairs, share: float) -> list[int]:
    """The layers whose heads together pay most to planted facts, most first; see above."""
    return _most(planted_attention(pairs).sum(-1), share)


def _most(paid: torch.Tensor, share: float) -> list[int]:
    if not paid.any():
        # Nothing tells them apart: to pick some would drop the others' scores by chance.
        share = 1.0
    return paid.topk(max(1, round(share * paid.numel()))).indices.tolist()
