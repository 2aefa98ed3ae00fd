"""The simulation of positions, against the model and against the product's sessions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from true_positions import Simulated, full_attention

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.attach import attach, attention_layers, rank_rule_of
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.models.recall.scorer_file import untrained_scorers
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens, tiny_llama

GEOMETRY = Geometry(8, sink_length=3, window_length=6, policy="carry", recall_slots=16)


@pytest.mark.parametrize("true_positions", [True, False])
def test_a_text_that_fits_gives_the_models_own_predictions(true_positions):
    model, tokens = tiny_llama(), random_tokens(30)
    scorers = untrained_scorers(2, 2, 8, seed=1)
    session = Simulated(
        model, GEOMETRY, scorers, RankRule(), true_positions=true_positions, longest=40
    )
    found = session.read(tokens, every=True)[20:].log_softmax(-1)
    own = full_attention(model, tokens[:21], tokens[21:] + tokens[:1])
    torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("slots", [16, 0, (8, 24)])
@pytest.mark.parametrize("length", [34, 41, 90, 150])
def test_pairs_that_move_are_the_products(slots, length):
    geometry = Geometry(8, sink_length=3, window_length=6, policy="carry", recall_slots=slots)
    tokens = random_tokens(length)
    model = tiny_llama()
    scorer = UNTRAINED_SCORER if slots else None
    attach(model, EdgeInfiniteConfig(geometry, NO_GATE, scorer=scorer))
    expected = Session(TorchEngine(model)).append(tokens)
    scorers = untrained_scorers(2, 2, 8, seed=1)
    rule = RankRule()
    if slots:
        scorers = [layer.retention_scorer for layer in attention_layers(model)]
        rule = rank_rule_of(model)
    plain = tiny_llama()
    session = Simulated(plain, geometry, scorers, rule, true_positions=False, longest=length)
    found = session.read(tokens)[-1].numpy()
    np.testing.assert_allclose(found, np.asarray(expected).reshape(-1), rtol=1e-3, atol=1e-3)


def test_true_positions_are_those_of_the_text():
    session = Simulated(
        tiny_llama(),
        GEOMETRY,
        untrained_scorers(2, 2, 8, seed=1),
        RankRule(),
        true_positions=True,
        longest=200,
    )
    session.read(random_tokens(123))
    for places in session.places:
        assert (places[:, :3] == torch.arange(3)).all()
        assert (places.diff() > 0).all() and (places[:, -1] == 122).all()
        assert places.shape[1] <= GEOMETRY.capacity
