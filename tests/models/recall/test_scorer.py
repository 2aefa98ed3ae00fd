"""The retention scorer of one layer."""

from __future__ import annotations

import torch

from edgeinfinite.models.recall.scorer import RetentionScorer


def scorer(retrieval: list[bool]) -> RetentionScorer:
    made = RetentionScorer(len(retrieval), 4)
    made.requires_grad_(False).make_streaming(~torch.tensor(retrieval))
    return made


def test_retrieval_heads_are_known_from_the_weights():
    made = scorer([True, False, True])
    assert (
        made.retrieval.flatten().tolist() == [1, 0, 1]
        and made.retrieval_heads == 2
        and not made.streams
    )
    assert "retrieval" not in made.state_dict()
    assert scorer([False, False]).streams


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
