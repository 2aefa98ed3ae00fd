"""From scores to ranks."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.recall.ranking import pooled_scores, with_neighbours
from edgeinfinite.models.recall.scorer import RetentionScorer


def scorer(retrieval: list[bool]) -> RetentionScorer:
    made = RetentionScorer(len(retrieval), 4)
    made.requires_grad_(False).make_streaming(~torch.tensor(retrieval))
    return made


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (2.0, -0.5, 0.0)])
def test_a_score_is_the_heads_own_and_the_weighted_mean_of_all_retrieval_heads(weights):
    first, second = scorer([True, False]), scorer([True, True])
    first.head_weights[0], second.head_weights[:, 0] = weights[0], torch.tensor(weights[1:])
    torch.manual_seed(0)
    rule = RankRule(pooled_share=0.7)
    own = [torch.randn(1, 2, 5), torch.randn(1, 2, 5)]
    own[0][:, 1] = 0  # as a head that doesn't score gives it
    heard = torch.stack((own[0][0, 0], own[1][0, 0], own[1][0, 1]))
    mean = (torch.tensor(weights)[:, None] * heard).sum(0) / 3
    one, two = pooled_scores(own, [first, second], rule)
    assert not one[0, 1].any()
    heads = [(one[0, 0], own[0][0, 0]), (two[0, 0], own[1][0, 0]), (two[0, 1], own[1][0, 1])]
    for found, alone in heads:
        expected = (1 - rule.pooled_share) * alone + rule.pooled_share * mean
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("neighbours", [0, 1, 3])
def test_a_rank_is_half_a_pairs_own_score_and_half_the_best_nearby(neighbours):
    torch.manual_seed(0)
    score = torch.randn(1, 2, 9)
    found = with_neighbours(score, RankRule(neighbours=neighbours))
    for i in range(9):
        near = score[..., max(0, i - neighbours) : i + neighbours + 1].max(-1).values
        torch.testing.assert_close(found[..., i], (score[..., i] + near) / 2)
