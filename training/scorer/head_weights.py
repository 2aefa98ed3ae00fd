"""How much each head counts in the pooled score (`models.recall.ranking.pooled_scores`).

Letters: H heads that score, n pairs.
"""

from __future__ import annotations

import torch
from torch.nn import functional

_RIDGE = 1e-3
_STEPS = 100


def fit_head_weights(scores: torch.Tensor, planted: torch.Tensor) -> torch.Tensor:
    """Logistic regression: by the scores of all heads, is a token part of a planted fact?

    There are few weights, so they learn about the heads rather than the facts: which heads see the
    same, and which give high scores to tokens that nobody asks for.

    Args:
        scores: `[H, n]`, of mean 0 and deviation 1 over tokens that aren't planted.
        planted: `[n]` bool.

    Returns:
        `[H]`, scaled so that over tokens that aren't planted the weighted mean of the scores has
        the standard deviation of their plain mean. Ones where nothing was planted.
    """
    heads, ordinary = len(scores), scores[:, ~planted]
    if not planted.any():
        return torch.ones(heads)
    weights, bias = torch.zeros(heads, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = weights @ scores + bias
        fit = functional.binary_cross_entropy_with_logits(logits, planted.float())
        total = fit + _RIDGE * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    fitted = weights.detach()
    return fitted * ordinary.sum(0).std() / (fitted @ ordinary).std()
