"""The rank rule: its text on cards, what it refuses, and how it divides slots."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.artifact.manifest import ScorerInfo
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.errors import EdgeInfiniteError

FIRST = (
    '{"neighbours":8,"neighbours_share":0.5,"newest_share":0.5,"pooled_share":0.8,'
    '"ranked_slots":512,"recency":0.00025}'
)
"""As it stands on the card of the scorer that ships, which is older than `repeats_*`."""

THIRDS = RankRule(
    ranked_slots=2**20,
    repeats_above=1024,
    repeats_scored_share=1 / 3,
    repeats_newest_share=1 / 3,
)


def test_a_card_from_before_the_shares_reads_and_stays_as_it_is():
    """Its text is part of the fingerprint of saved states."""
    rule = RankRule.from_json(FIRST)
    assert rule == RankRule() and rule.to_json() == FIRST
    for slots in (0, 512, 1024):
        assert not rule.needs_repeats(slots)
    for slots in (1025, 2048, 13440):
        assert rule.needs_repeats(slots) and rule.beside_repeats(slots) == (256, 256)


@pytest.mark.parametrize("rule", [THIRDS, RankRule(repeats_recency=1e-4), RankRule(neighbours=2)])
def test_a_rule_is_read_as_it_was_written(rule):
    assert RankRule.from_json(rule.to_json()) == rule
    told = json.loads(rule.to_json())
    assert told["neighbours"] == rule.neighbours
    assert all(value is not None for value in told.values())


@pytest.mark.parametrize("rule", [THIRDS, RankRule()])
def test_a_manifest_holds_the_rule_and_one_from_before_the_shares_the_default(rule):
    info = ScorerInfo("scorer.safetensors", 1, "0" * 64, rule)
    told = msgspec.json.encode(info)
    assert msgspec.json.decode(told, type=ScorerInfo) == info
    before = json.loads(told) | {"rank_rule": json.loads(FIRST)}
    assert msgspec.json.decode(json.dumps(before), type=ScorerInfo).rank_rule == RankRule()


@pytest.mark.parametrize("field", [f.name for f in fields(RankRule) if "repeats" not in f.name])
def test_a_card_that_lacks_one_of_the_first_fields_is_refused(field):
    told = json.loads(FIRST)
    del told[field]
    with pytest.raises(EdgeInfiniteError, match="isn't one that this version knows"):
        RankRule.from_json(json.dumps(told))
    with pytest.raises(EdgeInfiniteError, match="isn't one that this version knows"):
        RankRule.from_json(json.dumps(json.loads(FIRST) | {"another": 1}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"repeats_scored_share": -0.1}, "repeats_scored_share is -0.1; it must be from 0 to 1"),
        ({"repeats_newest_share": 1.1}, "repeats_newest_share is 1.1; it must be from 0 to 1"),
        ({"repeats_newest_share": float("nan")}, "repeats_newest_share is nan"),
        ({"repeats_scored_share": 0.7}, "sum to 1.03"),
        ({"repeats_above": -1}, "repeats_above is -1; it must be 0 or more"),
        ({"repeats_above": None}, "repeats_above must be given too"),
        ({"repeats_scored_share": None}, "repeats_scored_share must be given too"),
        ({"repeats_newest_share": None}, "repeats_newest_share must be given too"),
        ({"repeats_recency": 0.0}, "repeats_recency is 0.0; it must be above 0"),
        ({"repeats_recency": float("inf")}, "repeats_recency is inf"),
        ({"recency": -1.0}, "recency is -1.0; it must be above 0"),
    ],
)
def test_bad_numbers_are_named(changes, says):
    with pytest.raises(EdgeInfiniteError, match=says):
        replace(THIRDS, **changes)


@pytest.mark.parametrize("value", ['"a third"', "[0.3]", "true"])
def test_a_share_that_is_no_number_is_refused(value):
    told = THIRDS.to_json().replace("0.3333333333333333", value)
    with pytest.raises(EdgeInfiniteError, match="can't be read"):
        RankRule.from_json(told)


@given(
    st.integers(1, 20_000),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_shares_fill_no_more_than_the_slots_that_there_are(slots, scored, rest):
    newest = rest * (1 - scored)
    rule = replace(
        THIRDS, repeats_above=0, repeats_scored_share=scored, repeats_newest_share=newest
    )
    by_score, new = rule.beside_repeats(slots)
    assert by_score >= 1 and new >= 0
    assert by_score + new <= slots or (by_score == 1 and new == slots)
    assert abs(new - newest * slots) < 1 and (by_score == 1 or abs(by_score - scored * slots) < 1)
