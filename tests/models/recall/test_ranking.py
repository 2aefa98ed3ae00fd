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


@pytest.mark.parametrize("streams", [False, True])
def test_a_second_network_ranks_what_the_first_leaves(streams):
    """Of ten slots two by score, two for the newest, the others by the second network."""
    torch.manual_seed(0)
    made, rule = scorer([True, not streams]), RankRule(neighbours=0, ranked_slots=4)
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
        rest.sort(key=lambda pair, head=head: -told[head, pair])
        wanted = [count - 2, count - 1, *best, *rest[: slots - 4]]
        streaming = list(range(count - slots, count))
        assert sorted(kept) == (streaming if streams and head else sorted(wanted))


def random_candidates(count):
    torch.manual_seed(0)
    order, (key, value) = torch.arange(count), torch.randn(2, 1, 2, count, 4)
    return Candidates(torch.tensor(count), order, order, key, value)


THIRDS = RankRule(
    neighbours=0,
    ranked_slots=2**20,
    repeats_above=5,
    repeats_scored_share=1 / 3,
    repeats_newest_share=1 / 3,
)


@pytest.mark.parametrize("slots", [5, 6, 9, 10, 33])
def test_a_rule_of_thirds_gives_each_of_three_its_share(slots):
    """By score, the newest, and by the second network, which gets what division leaves."""
    made, segment = scorer([True, True]), 4
    made.keep_threshold.fill_(1e4)
    made.add_repeats(3).requires_grad_(False)
    count = slots + segment
    candidates = random_candidates(count)
    score = torch.randn(1, 2, count)
    parts = score.split((slots, segment), -1)
    found = rank(THIRDS, candidates, slots, RotaryTable(None, None), made, *parts).rank
    told = made.repeats(candidates.key, candidates.value)[0]
    third = slots // 3 if slots > 5 else 0
    scored = third or slots
    for head, kept in enumerate(found.topk(slots, dim=-1).indices[0].tolist()):
        older = range(count - third)
        by_score = (score[0, head] + THIRDS.recency * candidates.order).tolist()
        by_repeats = (told[head] + THIRDS.repeats_recency * candidates.order).tolist()
        best = sorted(older, key=by_score.__getitem__, reverse=True)[:scored]
        rest = sorted(set(older) - set(best), key=by_repeats.__getitem__, reverse=True)
        newest = range(count - third, count)
        wanted = [*newest, *best, *rest[: slots - third - scored]]
        assert sorted(kept) == sorted(wanted)


@pytest.mark.parametrize("slots", [5, 6, 33])
def test_a_rule_of_thirds_ranks_all_by_score_without_a_second_network(slots):
    made, count = scorer([True, True]), slots + 4
    parts = torch.randn(1, 2, count).split((slots, 4), -1)
    by_score = RankRule(neighbours=0, ranked_slots=2**20)
    ranks = [
        rank(rule, random_candidates(count), slots, RotaryTable(None, None), made, *parts).rank
        for rule in (THIRDS, by_score)
    ]
    assert torch.equal(*ranks)


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
