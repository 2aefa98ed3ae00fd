"""Gemma 3n and 4, whose last layers read what earlier ones cached, are transformers', also after
evictions."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_gemma4 import LAYERS, MODELS, OWN, WINDOW
from untouched_gemma4 import untouched, untouched_after_evictions

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.models.mom.layer_chunks import LayerChunks
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.weights.shared_copy import shared_copy
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

S, N, W = 4, 8, 12
EVICTING = Geometry(N, S, W, policy="carry")
each_model = pytest.mark.parametrize("kind", MODELS)


@functools.cache
def engine_of(kind: str, recall_slots: int = 0) -> TorchEngine:
    geometry = Geometry(N, S, W, policy="carry", recall_slots=recall_slots)
    scorer = UNTRAINED_SCORER if recall_slots else None
    return TorchEngine(attach(MODELS[kind](), EdgeInfiniteConfig(geometry, NO_GATE, scorer=scorer)))


def recalling(kind: str) -> TorchEngine:
    return engine_of(kind, 16)


@each_model
@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_any_split_of_a_short_text_equals_transformers(kind, parts):
    count = S + N + W
    tokens, wanted = random_tokens(count), untouched(kind, count)
    session, end = Session(engine_of(kind)), 0
    for part in parts:
        if piece := tokens[end : end + part]:
            end += len(piece)
            assert np.abs(session.append(piece) - wanted[end - 1]).max() < 1e-4


@each_model
@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 30), min_size=3, max_size=6))
def test_after_evictions_it_is_transformers_with_the_kept_pairs(kind, parts):
    tokens, wanted = random_tokens(90), untouched_after_evictions(kind, 90, EVICTING)
    session, end = Session(engine_of(kind)), 0
    for part in [*parts, 90]:
        if piece := tokens[end : end + part]:
            end += len(piece)
            assert np.abs(session.append(piece) - wanted[end - 1]).max() < 1e-4
    assert session.compressions > 2


@each_model
@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_with_recall_slots_any_split_gives_the_same(kind, parts):
    tokens = random_tokens(110)
    whole, session, end = Session(recalling(kind)).append(tokens), Session(recalling(kind)), 0
    for part in [*parts, 110]:
        if piece := tokens[end : end + part]:
            end += len(piece)
            logits = session.append(piece)
    assert np.abs(logits - whole).max() < 1e-4


@each_model
def test_forks_go_their_own_ways_and_a_saved_session_goes_on_bit_for_bit(kind, tmp_path):
    tokens = random_tokens(80)
    session = Session(recalling(kind))
    session.append(tokens[:50])
    save_session(session, tmp_path / "s")
    fork, undo, (restored, _) = (
        session.fork(),
        session.mark(),
        load_session(recalling(kind), tmp_path / "s"),
    )
    wanted = fork.append(tokens[50:])
    np.testing.assert_array_equal(restored.append(tokens[50:]), wanted)
    session.append(tokens[:9])
    undo()
    np.testing.assert_array_equal(session.append(tokens[50:]), wanted)


@each_model
def test_only_layers_with_keys_of_their_own_hold_a_cache_and_only_full_ones_have_scores(kind):
    facts = architecture_of(MODELS[kind]())
    assert (len(facts.layers), facts.readers) == (OWN, len(LAYERS) - OWN)
    full = (2, 16) if kind == "gemma3n" else (1, 32)
    assert facts.every_heads == tuple(full if "full" in t else (2, 16) for t in LAYERS[:OWN])
    state = Session(recalling(kind)).state
    slots = {"sliding_attention": WINDOW - 1 + N, "full_attention": S + 16 + N + W}
    for layer, type_ in enumerate(LAYERS[:OWN]):
        heads, size = full if type_ == "full_attention" else (2, 16)
        for name in (f"k_cache_{layer}", f"v_cache_{layer}"):
            assert state.arrays[name].shape == (1, heads, slots[type_], size)
    scored = [name for name in state.arrays if name.startswith("scores")]
    own_full = [i for i, type_ in enumerate(LAYERS[:OWN]) if type_ == "full_attention"]
    assert scored == [f"scores_{layer}" for layer in own_full]
    assert len([n for n in state.arrays if "cache" in n]) == 2 * OWN


@each_model
def test_what_knows_only_caches_that_are_alike_refuses_it_in_a_line(kind):
    with pytest.raises(EdgeInfiniteError, match=r"exact attention .* can't read the caches that"):
        MomReader(MODELS[kind]())
    with pytest.raises(EdgeInfiniteError, match="layer by layer can't read the caches that"):
        LayerChunks(MODELS[kind](), 8)
    with pytest.raises(EdgeInfiniteError, match="give --gate none"):
        attach(MODELS[kind](), EdgeInfiniteConfig(Geometry(N, S, W, policy="carry")))


@each_model
def test_a_copy_knows_which_layers_have_caches(kind):
    model = MODELS[kind]()
    assert len(attention_layers(model)) == OWN
    assert len(attention_layers(shared_copy(model))) == OWN
    assert [len(attention_layers(shared_copy(model, chosen))) for chosen in ([1], [1, 4])] == [1, 1]
