"""Scores of several heads that are put together."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.models.recall.scorer import AGREEMENT_SHARE, RetentionScorer, agreed


def scorer(scoring: list[bool]) -> RetentionScorer:
    made = RetentionScorer(len(scoring), 4)
    made.requires_grad_(False).rank_by_age(~torch.tensor(scoring))
    return made


@pytest.mark.parametrize("votes", [(1.0, 1.0, 1.0), (2.0, -0.5, 0.0)])
def test_a_score_is_the_heads_own_and_what_all_that_score_think_by_their_votes(votes):
    first, second = scorer([True, False]), scorer([True, True])
    first.votes[0], second.votes[:, 0] = votes[0], torch.tensor(votes[1:])
    torch.manual_seed(0)
    own = [torch.randn(1, 2, 5), torch.randn(1, 2, 5)]
    own[0][:, 1] = 0  # as a head that doesn't score gives it
    heard = torch.stack((own[0][0, 0], own[1][0, 0], own[1][0, 1]))
    mean = (torch.tensor(votes)[:, None] * heard).sum(0) / 3
    one, two = agreed(own, [first, second])
    assert not one[0, 1].any()
    heads = [(one[0, 0], own[0][0, 0]), (two[0, 0], own[1][0, 0]), (two[0, 1], own[1][0, 1])]
    for found, alone in heads:
        expected = (1 - AGREEMENT_SHARE) * alone + AGREEMENT_SHARE * mean
        torch.testing.assert_close(found, expected)


def test_who_scores_is_known_from_the_weights():
    made = scorer([True, False, True])
    assert made.scoring.flatten().tolist() == [1, 0, 1] and made.voters == 2 and not made.by_age
    assert "scoring" not in made.state_dict()
    assert scorer([False, False]).by_age


def test_standardised_scores_have_mean_zero_and_deviation_one_and_the_same_order():
    torch.manual_seed(0)
    made = RetentionScorer(3, 4).requires_grad_(False)
    made.b2[:] = torch.tensor([-6.0, 0.0, 40.0])[:, None, None]
    key, value = torch.randn(2, 3, 500, 4)
    before = made(key, value)
    made.standardise(key, value)
    after = made(key, value)
    torch.testing.assert_close(after.mean(-1), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(after.std(-1), torch.ones(3))
    assert torch.equal(before[0].argsort()[-20:], after[0].argsort()[-20:])
