"""The simulation of guided slots, against the one without a guide."""

from __future__ import annotations

import pytest
import torch
from guided_slots import Guided, Way
from true_positions import Simulated

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.recall.scorer_file import untrained_scorers
from tiny import random_tokens, tiny_llama

GEOMETRY = Geometry(8, sink_length=3, window_length=6, policy="carry", recall_slots=16)


def guided(way: Way, tokens: list[int]) -> Guided:
    session = Guided(
        tiny_llama(),
        GEOMETRY,
        untrained_scorers(2, 2, 8, seed=1),
        RankRule(),
        true_positions=False,
        longest=len(tokens),
        way=way,
        guide=tokens[-way.guide :],
    )
    session.read(tokens)
    return session


@pytest.mark.parametrize("every", [0, 1, 3])
def test_a_look_changes_nothing_but_the_ranks(every):
    """Where only the scorer counts, the same pairs stay as without a guide."""
    tokens = random_tokens(123)
    plain = Simulated(
        tiny_llama(),
        GEOMETRY,
        untrained_scorers(2, 2, 8, seed=1),
        RankRule(),
        true_positions=False,
        longest=len(tokens),
    )
    plain.read(tokens)
    way = Way(guide=5, every=every, all_heads=False, scorer=1.0)
    for key, other in zip(guided(way, tokens).keys, plain.keys, strict=True):
        torch.testing.assert_close(key, other)


@pytest.mark.parametrize("every", [0, 1, 3])
def test_a_guide_chooses_other_pairs_in_as_many_slots(every):
    tokens = random_tokens(123)
    found = guided(Way(guide=5, every=every), tokens)
    other = guided(Way(guide=0), tokens)
    assert [key.shape for key in found.keys] == [key.shape for key in other.keys]
    assert any(not torch.allclose(a, b) for a, b in zip(found.keys, other.keys, strict=True))


def test_a_query_that_is_turned_is_the_query_of_a_later_place():
    """What one look keeps is what a new look would find, if the pairs were the same."""
    session = guided(Way(guide=5), random_tokens(60))
    session._look()
    first = [query.clone() for query in session.queries]
    at, session._next = session._at, session._next + 7
    turned = session._turned(0, first[0])
    session._look()  # the first layer's queries depend on nothing but token and place
    torch.testing.assert_close(turned, session.queries[0], rtol=1e-4, atol=1e-4)
    assert session._at == at + 7
