"""From scores to ranks."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.recall.candidates import Candidates
from edgeinfinite.models.recall.ranking import pooled_scores, rank, with_neighbours
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer import KEEP_ALL, RetentionScorer


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


@pytest.mark.parametrize("recency", [5e-5, 0.3])
@pytest.mark.parametrize("streams", [False, True])
def test_a_second_network_ranks_what_the_first_leaves(streams, recency):
    """Of ten slots two by score, two for the newest, the others by the second network."""
    torch.manual_seed(0)
    made = scorer([True, not streams])
    rule = RankRule(neighbours=0, ranked_slots=4, repeats_recency=recency)
    made.keep_threshold.copy_(torch.tensor([[1e4], [KEEP_ALL if streams else 1e4]]))
    made.add_repeats(3).requires_grad_(False)
    slots, segment = 10, 4
    count = slots + segment
    order, (key, value) = torch.arange(count), torch.randn(2, 1, 2, count, 4)
    candidates = Candidates(torch.tensor(count), order, order, key, value)
    score = torch.randn(1, 2, count) * made.retrieval
    known, evicted = score.split((slots, segment), -1)
    nowhere = RotaryTable(None, None)
    found = rank(rule, candidates, slots, nowhere, made, known, evicted).rank
    told = made.repeats(key, value)[0]
    for head, kept in enumerate(found.topk(slots, dim=-1).indices[0].tolist()):
        older = range(count - 2)
        best = sorted(older, key=lambda pair, head=head: -score[0, head, pair])[:2]
        rest = [pair for pair in older if pair not in best]
        rest.sort(key=lambda pair, head=head: -(told[head, pair] + recency * pair))
        wanted = [count - 2, count - 1, *best, *rest[: slots - 4]]
        streaming = list(range(count - slots, count))
        assert sorted(kept) == (streaming if streams and head else sorted(wanted))


@pytest.mark.parametrize("slots", [2, 7, 8, 9])
def test_a_second_network_changes_nothing_in_caches_with_few_slots(slots):
    torch.manual_seed(0)
    made, rule = scorer([True, True]), RankRule(neighbours=0, ranked_slots=4)
    made.keep_threshold.fill_(1e4)
    count = slots + 4
    order, (key, value) = torch.arange(count), torch.randn(2, 1, 2, count, 4)
    candidates = Candidates(torch.tensor(count), order, order, key, value)
    parts = torch.randn(1, 2, count).split((slots, 4), -1)
    before = rank(rule, candidates, slots, RotaryTable(None, None), made, *parts).rank
    made.add_repeats(3).requires_grad_(False)
    after = rank(rule, candidates, slots, RotaryTable(None, None), made, *parts).rank
    assert torch.equal(before, after) == (slots <= 8)
