"""The rank rule: its text on cards, what it refuses, and how it divides slots."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from edgeinfinite.artifact.manifest import ScorerInfo
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.errors import EdgeInfiniteError

FIRST = (
    '{"neighbours":8,"neighbours_share":0.5,"newest_share":0.5,"pooled_share":0.8,'
    '"ranked_slots":512,"recency":0.00025}'
)
"""As it stood on the first cards, which are older than `repeats_recency`."""

LATER = RankRule(repeats_recency=1e-4)


def test_a_card_from_before_the_newer_fields_reads_and_stays_as_it_is():
    """Its text is part of the fingerprint of saved states."""
    rule = RankRule.from_json(FIRST)
    assert rule == RankRule() and rule.to_json() == FIRST
    for slots in (0, 512, 1024):
        assert not rule.needs_repeats(slots)
    for slots in (1025, 2048, 13440):
        assert rule.needs_repeats(slots)
    assert rule.beside_repeats() == 256


@pytest.mark.parametrize("rule", [LATER, RankRule(neighbours=2)])
def test_a_rule_is_read_as_it_was_written(rule):
    assert RankRule.from_json(rule.to_json()) == rule
    told = json.loads(rule.to_json())
    assert told["neighbours"] == rule.neighbours
    assert all(value is not None for value in told.values())


@pytest.mark.parametrize("rule", [LATER, RankRule()])
def test_a_manifest_holds_the_rule_and_an_old_one_the_default(rule):
    info = ScorerInfo("scorer.safetensors", 1, "0" * 64, rule)
    told = msgspec.json.encode(info)
    assert msgspec.json.decode(told, type=ScorerInfo) == info
    before = json.loads(told) | {"rank_rule": json.loads(FIRST)}
    assert msgspec.json.decode(json.dumps(before), type=ScorerInfo).rank_rule == RankRule()


@pytest.mark.parametrize("field", sorted(json.loads(FIRST)))
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
        ({"newest_share": -0.1}, "newest_share is -0.1; it must be from 0 to 1"),
        ({"pooled_share": 1.1}, "pooled_share is 1.1; it must be from 0 to 1"),
        ({"neighbours_share": float("nan")}, "neighbours_share is nan"),
        ({"ranked_slots": -1}, "ranked_slots is -1; it must be 0 or more"),
        ({"repeats_recency": 0.0}, "repeats_recency is 0.0; it must be above 0"),
        ({"repeats_recency": float("inf")}, "repeats_recency is inf"),
        ({"recency": -1.0}, "recency is -1.0; it must be above 0"),
    ],
)
def test_bad_numbers_are_named(changes, says):
    with pytest.raises(EdgeInfiniteError, match=says):
        replace(LATER, **changes)


@pytest.mark.parametrize("value", ['"late"', "[0.0001]", "true"])
def test_a_field_that_is_no_number_is_refused(value):
    with pytest.raises(EdgeInfiniteError, match="can't be read"):
        RankRule.from_json(LATER.to_json().replace("0.0001", value))
