"""How good the scores are on pairs that the fit didn't see.

Letters: L layers, K KV heads, n pairs, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from edgeinfinite.models.recall.scorer import PairNetwork, RetentionScorer
from edgeinfinite.training.scorer.pairs import Pairs

_SHARE_KEPT = 0.25


def score_of(network: PairNetwork, inputs: torch.Tensor) -> torch.Tensor:
    """What a network says, `[K, n]`, of pairs `[K, n, 2D]`."""
    key, value = inputs.float().chunk(2, dim=-1)
    return network(key, value)


def held_out_score(scorers: Sequence[RetentionScorer], pairs: Pairs) -> dict[str, float]:
    """How good the scores are on pairs that the fit didn't see.

    Returns:
        `huber_loss` per pair, and `attention_kept`, `planted_kept`: of all the attention paid to
        the pairs (to those of planted facts), how much goes to the quarter that scores highest.
    """
    losses, kept, planted = 0.0, 0.0, 0.0
    all_planted = 0.0
    attention = 0.0
    for scorer, inputs, targets in zip(scorers, pairs.inputs, pairs.paid["largest"], strict=True):
        score = score_of(scorer, inputs)
        losses += float(functional.huber_loss(score, targets))
        best = score.topk(int(_SHARE_KEPT * score.shape[-1])).indices
        paid = targets.exp()
        kept += float(paid.gather(-1, best).sum())
        attention += float(paid.sum())
        paid = paid * pairs.planted
        planted += float(paid.gather(-1, best).sum())
        all_planted += float(paid.sum())
    return {
        "huber_loss": losses / len(scorers),
        "attention_kept": kept / attention,
        "planted_kept": planted / max(all_planted, 1e-9),
    }
