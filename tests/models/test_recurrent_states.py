"""A model whose layers keep more than KV caches is transformers', also after evictions."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_mamba2 import (
    CHANNELS,
    HEADS,
    OF_KEY,
    OF_VALUE,
    tiny_falcon_h1,
    tiny_granite_h,
)
from tiny_qwen3_5 import tiny_qwen3_5
from untouched_hybrids import MODELS, N, S, W, assert_close, untouched, untouched_after_evictions

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.models.mom.layer_chunks import LayerChunks
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.recurrent_states import recurrent_layers, states_of
from edgeinfinite.models.state import TensorState
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

SSM = ("granite_h", "bamba", "falcon_h1")
each_model = pytest.mark.parametrize("kind", MODELS)


@functools.cache
def engine_of(kind: str, recall_slots: int = 0) -> TorchEngine:
    geometry = Geometry(N, S, W, policy="carry", recall_slots=recall_slots)
    scorer = UNTRAINED_SCORER if recall_slots else None
    return TorchEngine(attach(MODELS[kind](), EdgeInfiniteConfig(geometry, NO_GATE, scorer=scorer)))


def recalling(kind: str) -> TorchEngine:
    return engine_of(kind, 16)


@each_model
@settings(max_examples=15, deadline=None)
@given(parts=st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_any_split_of_a_short_text_equals_transformers(kind, parts):
    count = S + N + W
    tokens, wanted = random_tokens(count), untouched(kind, count)
    session, end = Session(engine_of(kind)), 0
    for part in parts:
        if piece := tokens[end : end + part]:
            end += len(piece)
            assert_close(kind, session.append(piece), wanted[end - 1])


@each_model
@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 30), min_size=3, max_size=6))
def test_after_evictions_it_is_transformers_with_the_kept_pairs(kind, parts):
    tokens, wanted = random_tokens(90), untouched_after_evictions(kind, 90)
    session, end = Session(engine_of(kind)), 0
    for part in [*parts, 90]:
        if piece := tokens[end : end + part]:
            end += len(piece)
            assert_close(kind, session.append(piece), wanted[end - 1])
    assert session.compressions > 2


@functools.cache
def read_at_once(kind: str, count: int) -> np.ndarray:
    return Session(recalling(kind)).append(random_tokens(count))


@each_model
@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_with_recall_slots_any_split_gives_the_same(kind, parts):
    tokens = random_tokens(110)
    whole, session, end = read_at_once(kind, 110), Session(recalling(kind)), 0
    for part in [*parts, 110]:
        if piece := tokens[end : end + part]:
            end += len(piece)
            logits = session.append(piece)
    assert_close(kind, logits, whole)


@each_model
def test_forks_go_their_own_ways_and_an_undone_turn_leaves_nothing(kind):
    tokens = random_tokens(70)
    session = Session(recalling(kind))
    session.append(tokens[:50])
    fork, undo = session.fork(), session.mark()
    wanted = fork.append(tokens[50:])
    session.append(tokens[:9])
    undo()
    np.testing.assert_array_equal(session.append(tokens[50:]), wanted)


@each_model
def test_a_saved_session_goes_on_bit_for_bit(kind, tmp_path):
    tokens = random_tokens(80)
    session = Session(recalling(kind))
    session.append(tokens[:61])
    save_session(session, tmp_path / "s")
    restored, _ = load_session(recalling(kind), tmp_path / "s")
    np.testing.assert_array_equal(restored.append(tokens[61:]), session.append(tokens[61:]))


def numbered(role: str, count: int) -> list[str]:
    return [f"{role}_{number}" for number in range(count)]


@each_model
def test_the_state_has_two_attention_layers_and_what_other_layers_keep(kind):
    """Four other layers; in Falcon-H1 both are in one layer."""
    arrays = Session(engine_of(kind)).state.arrays
    others = 2 if kind == "falcon_h1" else 4
    held = numbered("conv_state", others)
    held += [] if kind == "lfm2" else numbered("recurrent_state", others)
    caches = numbered("k_cache", 2) + numbered("v_cache", 2)
    assert set(arrays) == {*held, *caches, "length", "has_memory"}
    columns = (CHANNELS, 3) if kind in SSM else (64, 2) if kind == "lfm2" else (2 * 32 + 96, 3)
    remembered = (HEADS, OF_KEY, OF_VALUE) if kind in SSM else (4, 16, 24)
    assert arrays["conv_state_0"].shape == (1, *columns)
    assert all(arrays[n].shape == (1, *remembered) for n in held if n.startswith("recurrent"))


@each_model
@pytest.mark.parametrize("tokens", [1, 5])
def test_a_pass_leaves_the_states_that_it_was_given(kind, tokens):
    """Transformers writes one token into the state of an SSM."""
    model = engine_of(kind).model
    held = [tensor for layer in recurrent_layers(model) for tensor in layer.tensors]
    given = [torch.ones(tensor.shape) for tensor in held]
    states = states_of(model, given)
    assert states is not None
    with torch.no_grad():
        model(
            input_ids=torch.arange(tokens)[None],
            position_ids=torch.arange(tokens)[None],
            past_key_values=states,
            use_cache=False,
        )
    assert all(bool((tensor == 1).all()) for tensor in given)
    assert all(bool((tensor != 1).any()) for tensor in states.tensors)


@pytest.mark.parametrize("made", [tiny_granite_h, tiny_falcon_h1], ids=["granite_h", "falcon_h1"])
def test_limits_of_time_steps_are_refused_by_name(made):
    """Transformers clamps dt where it reads many tokens, and doesn't where it reads one."""
    with pytest.raises(EdgeInfiniteError, match=r"layer 0 limits time steps to 0.001 to inf"):
        architecture_of(made(time_step_limit=(0.001, float("inf"))))
    with pytest.raises(EdgeInfiniteError, match=r"layer 0 limits time steps to 0.0 to 0.1"):
        architecture_of(made(time_step_limit=(0.0, 0.1)))


def test_what_has_nothing_to_bound_or_no_past_is_refused_in_a_line_that_says_so():
    with pytest.raises(EdgeInfiniteError, match="none of its layers attends, so what it keeps"):
        architecture_of(tiny_qwen3_5(("linear_attention", "linear_attention")))
    with pytest.raises(EdgeInfiniteError, match="layer 0 has a convolution of length 1"):
        architecture_of(tiny_qwen3_5(linear_conv_kernel_dim=1))


@each_model
def test_a_state_that_drops_what_layers_keep_is_refused(kind):
    engine = engine_of(kind)
    model, shared = engine.model, engine._shared(engine.new_state())
    fields = {name: value for name, value in vars(shared).items() if name != "recurrent"}
    with pytest.raises(EdgeInfiniteError, match="layers with a state of their own"):
        run_tokens(model, torch.tensor([[1, 2]]), TensorState(**fields))


@each_model
def test_what_holds_kv_caches_alone_refuses_it_in_a_line(kind):
    with pytest.raises(EdgeInfiniteError, match=r"exact attention .* can't carry on the states"):
        MomReader(MODELS[kind]())
    with pytest.raises(EdgeInfiniteError, match="layer by layer can't carry on the states"):
        LayerChunks(MODELS[kind](), 8)


@each_model
def test_the_papers_policy_is_refused(kind):
    with pytest.raises(EdgeInfiniteError, match="give --policy carry"):
        attach(MODELS[kind](), EdgeInfiniteConfig(Geometry(16, 4, 4), NO_GATE))
