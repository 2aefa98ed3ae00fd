"""Hidden pairs, against the model's own attention and against a session's cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
import slots_at_question
import torch
from slot_masks import Hidden, fill

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from tiny import random_tokens, tiny_llama

RULE = RankRule(ranked_slots=4, recency=1e-3)
GEOMETRY = Geometry(8, sink_length=2, window_length=6, policy="carry", recall_slots=16)


@torch.inference_mode()
def test_with_nothing_hidden_predictions_are_the_models_own():
    model, tokens = tiny_llama(), random_tokens(40)
    cache = slots_at_question.prefill(model, tokens[:30])
    everything = Hidden([None, None], watch=True)
    found = slots_at_question.predictions(model, cache, tokens[30:], everything)
    own = model(input_ids=torch.tensor([tokens])).logits[0, 30:].log_softmax(-1)
    torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-4)
    assert [tuple(paid.shape) for paid in everything.paid] == [(2, 30), (2, 30)]
    assert cache.get_seq_length() == 30


@torch.inference_mode()
def test_a_hidden_pair_is_as_good_as_absent():
    model, tokens = tiny_llama(layers=1), random_tokens(12)
    cache = slots_at_question.prefill(model, tokens[:10])
    kept = torch.ones(2, 10, dtype=torch.bool)
    kept[:, 4] = False
    before = slots_at_question.predictions(model, cache, tokens[10:], Hidden([kept]))
    for state in (cache.layers[0].keys, cache.layers[0].values):
        state[:, :, 4] = 100.0
    after = slots_at_question.predictions(model, cache, tokens[10:], Hidden([kept]))
    torch.testing.assert_close(before, after)


@pytest.mark.parametrize("tokens", [12, 28, 29, 60, 200])
@pytest.mark.parametrize("ranked", [True, False])
def test_a_full_cache_holds_sinks_slots_and_window_whatever_fills_it(tokens, ranked):
    rank = torch.randn(2, tokens, generator=torch.Generator().manual_seed(0)) if ranked else None
    by_rank = torch.tensor([[True], [False]])
    kept = fill(GEOMETRY, 0, tokens, RULE, rank, by_rank)
    assert kept.sum(-1).tolist() == [min(tokens, 2 + 16 + 6 + 4)] * 2
    assert kept[:, :2].all() and kept[:, -10:].all()


def test_heads_by_rank_keep_the_highest_and_others_the_newest():
    rank = torch.zeros(2, 100)
    rank[:, 30] = 5.0
    kept = fill(
        GEOMETRY, 0, 100, replace(RULE, newest_share=0.5), rank, torch.tensor([[1], [0]]) > 0
    )
    assert kept[:, 30].tolist() == [True, False]
    assert kept[1, 74:].all() and not kept[1, 2:74].any()
    assert kept[0, 82:].all()  # half of the slots, and the window
