"""The weight of each head in the pooled score of a token."""

from __future__ import annotations

import torch

from edgeinfinite.training.scorer.head_weights import fit_head_weights


def scores_and_planted() -> tuple[torch.Tensor, torch.Tensor]:
    """The first head sees what is planted, in noise that the second sees too; the third nothing."""
    random = torch.Generator().manual_seed(0)
    planted = torch.rand(4000, generator=random) < 0.1
    noise, chance = torch.randn(2, 4000, generator=random)
    scores = torch.stack((noise + 2.0 * planted, noise, chance))
    ordinary = scores[:, ~planted]
    return (scores - ordinary.mean(1, keepdim=True)) / ordinary.std(1, keepdim=True), planted


def test_head_weights_find_planted_tokens_better_than_the_mean():
    scores, planted = scores_and_planted()
    votes = fit_head_weights(scores, planted)
    assert votes[0] > 0 > votes[1] and abs(votes[2]) < 0.1 * votes[0]

    def found(opinion: torch.Tensor) -> float:
        return float(planted[opinion.topk(int(planted.sum())).indices].float().mean())

    assert found(votes @ scores) > 0.9 > 0.6 > found(scores.mean(0))


def test_the_weighted_score_has_the_deviation_of_the_mean():
    scores, planted = scores_and_planted()
    votes = fit_head_weights(scores, planted)
    ordinary = scores[:, ~planted]
    torch.testing.assert_close((votes @ ordinary).std(), ordinary.sum(0).std())


def test_without_planted_facts_all_heads_have_the_same_weight():
    scores, planted = scores_and_planted()
    assert fit_head_weights(scores, torch.zeros_like(planted)).tolist() == [1.0, 1.0, 1.0]
