"""A model in which most layers don't attend is transformers', also after evictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_lfm2 import tiny_lfm2
from transformers import DynamicCache

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.models.mom.layer_chunks import LayerChunks
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.state import TensorState
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

S, N, W = 4, 8, 12
GEOMETRY = Geometry(N, S, W, policy="carry")


def engine_of(geometry: Geometry = GEOMETRY, scorer: str | None = None) -> TorchEngine:
    return TorchEngine(attach(tiny_lfm2(), EdgeInfiniteConfig(geometry, NO_GATE, scorer=scorer)))


ENGINE = engine_of()
RECALLING = engine_of(Geometry(N, S, W, policy="carry", recall_slots=16), UNTRAINED_SCORER)


def untouched(tokens: list[int]) -> np.ndarray:
    """The logits `[T, V]` of transformers, for a text of which nothing is evicted."""
    with torch.no_grad():
        return tiny_lfm2()(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def untouched_after_evictions(tokens: list[int]) -> np.ndarray:
    """The logits `[T, V]` of transformers' model with its own cache, token by token.

    Whenever W + N tokens follow the sinks, the N oldest of them are cut out of the cache, and RoPE
    is turned back in the keys after them. The convolutions' states stay.
    """
    model, cache, found = tiny_lfm2(), None, []
    cache = DynamicCache(config=model.config)
    attends = [i for i, kind in enumerate(model.config.layer_types) if kind == "full_attention"]
    for token in tokens:
        length = cache.layers[attends[0]].keys.shape[2] if found else 0
        if length == S + W + N:
            cos, sin = model.model.rotary_emb(torch.ones(1), torch.tensor([[N]]))
            for layer in (cache.layers[index] for index in attends):
                moved = layer.keys[:, :, S + N :]
                first, second = moved.chunk(2, dim=-1)  # turned back by N positions
                moved = moved * cos + torch.cat((second, -first), dim=-1) * sin
                layer.keys = torch.cat((layer.keys[:, :, :S], moved), dim=2)
                layer.values = torch.cat((layer.values[:, :, :S], layer.values[:, :, S + N :]), 2)
            length -= N
        with torch.no_grad():
            output = model(
                input_ids=torch.tensor([[token]]),
                position_ids=torch.tensor([[length]]),
                past_key_values=cache,
                use_cache=True,
            )
        found.append(output.logits[0, -1].numpy())
    return np.stack(found)


@settings(max_examples=25, deadline=None)
@given(parts=st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_any_split_of_a_short_text_equals_transformers(parts):
    tokens = random_tokens(min(sum(parts), S + N + W))
    wanted, session, end = untouched(tokens), Session(ENGINE), 0
    for part in parts:
        piece = tokens[end : end + part]
        if piece:
            end += len(piece)
            np.testing.assert_allclose(session.append(piece), wanted[end - 1], atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(parts=st.lists(st.integers(1, 30), min_size=3, max_size=6))
def test_after_evictions_it_is_transformers_with_the_kept_pairs(parts):
    tokens = random_tokens(90)
    wanted, session, end = untouched_after_evictions(tokens), Session(ENGINE), 0
    for part in [*parts, 90]:
        piece = tokens[end : end + part]
        if piece:
            end += len(piece)
            np.testing.assert_allclose(session.append(piece), wanted[end - 1], atol=1e-4)
    assert session.compressions > 2


@settings(max_examples=15, deadline=None)
@given(parts=st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_with_recall_slots_any_split_gives_the_same(parts):
    tokens = random_tokens(110)
    whole, session, end = Session(RECALLING).append(tokens), Session(RECALLING), 0
    for part in [*parts, 110]:
        if piece := tokens[end : end + part]:
            end += len(piece)
            logits = session.append(piece)
    np.testing.assert_allclose(logits, whole, atol=1e-4)


def test_forks_go_their_own_ways_and_an_undone_turn_leaves_nothing():
    tokens = random_tokens(70)
    session = Session(RECALLING)
    session.append(tokens[:50])
    fork, undo = session.fork(), session.mark()
    wanted = fork.append(tokens[50:])
    session.append(tokens[:9])
    undo()
    np.testing.assert_array_equal(session.append(tokens[50:]), wanted)


def test_a_saved_session_goes_on_bit_for_bit(tmp_path):
    tokens = random_tokens(80)
    session = Session(RECALLING)
    session.append(tokens[:61])
    save_session(session, tmp_path / "s")
    restored, _ = load_session(RECALLING, tmp_path / "s")
    np.testing.assert_array_equal(restored.append(tokens[61:]), session.append(tokens[61:]))


def test_the_state_has_the_bytes_of_two_attention_layers_and_of_the_convolutions():
    names = {name: array.nbytes for name, array in Session(ENGINE).state.arrays.items()}
    assert {name for name in names if name.startswith("conv_state")} == {
        f"conv_state_{number}" for number in range(4)
    }
    assert names["conv_state_0"] == 64 * 2 * 4
    assert sorted(name for name in names if name.startswith("k_cache")) == [
        "k_cache_0",
        "k_cache_1",
    ]


def test_a_state_that_drops_the_convolutions_is_refused():
    model = ENGINE.model
    shared = ENGINE._shared(ENGINE.new_state())
    fields = {name: value for name, value in vars(shared).items() if name != "recurrent"}
    with pytest.raises(EdgeInfiniteError, match="layers with a state of their own"):
        run_tokens(model, torch.tensor([[1, 2]]), TensorState(**fields))


def test_what_holds_kv_caches_alone_refuses_it_in_a_line():
    with pytest.raises(EdgeInfiniteError, match=r"exact attention .* can't carry on the states"):
        MomReader(tiny_lfm2())
    with pytest.raises(EdgeInfiniteError, match="layer by layer can't carry on the states"):
        LayerChunks(tiny_lfm2(), 8)


def test_the_papers_policy_is_refused():
    with pytest.raises(EdgeInfiniteError, match="give --policy carry"):
        attach(tiny_lfm2(), EdgeInfiniteConfig(Geometry(16, 4, 4), NO_GATE))
