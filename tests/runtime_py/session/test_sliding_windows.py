"""Hybrid models: a layer with a sliding window holds that window and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_loop import read_in_a_plain_loop

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, config_of
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_SCORER, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, random_tokens, tiny_hybrid

LAYERS = 4
FAMILIES = ("Gemma2", "Gemma3", "GraniteSWA", "Qwen2", "SmolLM3")


def geometry_of(sinks: int, slots: int, segment: int, window: int) -> Geometry:
    return Geometry(segment, sinks, window, policy="carry", recall_slots=slots)


geometries = st.builds(
    lambda sinks, rounds, segment, window: geometry_of(sinks, rounds * segment, segment, window),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(1, 7),
    st.integers(1, 8),
)
windows = st.integers(2, 12)


@cache
def engine_for(family: str, window: int, geometry: Geometry) -> TorchEngine:
    scorer = UNTRAINED_SCORER if geometry.recall_slots else None
    model = attach(
        tiny_hybrid(family, window), EdgeInfiniteConfig(geometry, NO_GATE, scorer=scorer)
    )
    return TorchEngine(model)


def sliding_layers(engine: TorchEngine) -> list[int]:
    found = [layer for layer in range(LAYERS) if engine.geometry.slides(layer)]
    assert 0 < len(found) < LAYERS
    return found


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    window=windows,
    geometry=geometries,
    pieces=st.lists(st.integers(1, 25), min_size=1, max_size=4),
    chunk_length=st.integers(1, 12),
    decoded=st.integers(0, 12),
)
def test_any_split_gives_the_same_state(family, window, geometry, pieces, chunk_length, decoded):
    engine = engine_for(family, window, geometry)
    tokens = random_tokens(sum(pieces) + decoded)
    whole = Session(engine, chunk_length=1000)
    expected = whole.append(tokens)
    session, start = Session(engine, chunk_length=chunk_length), 0
    for piece in [*pieces, *[1] * decoded]:
        logits = session.append(tokens[start : start + piece])
        start += piece
    assert_close(logits, expected, 1e-4)
    assert (session.tokens_read, session.compressions) == (whole.tokens_read, whole.compressions)
    assert session.state.length.tolist() == whole.state.length.tolist()
    for name, array in session.state.arrays.items():
        used = ...
        if "_cache_" in name:
            used = (..., slice(int(session.state.length[int(name[-1])])), slice(None))
        assert_close(array[used], whole.state.arrays[name][used], 1e-4)


@settings(max_examples=40, deadline=None)
@given(family=st.sampled_from(FAMILIES), window=windows, geometry=geometries, data=st.data())
def test_up_to_the_other_layers_capacity_the_backbone_is_computed(family, window, geometry, data):
    """However long the text is beside the sliding window."""
    length = data.draw(st.integers(1, geometry.capacity))
    tokens = random_tokens(length)
    session = Session(engine_for(family, window, geometry), chunk_length=5)
    logits = session.append(tokens)
    assert session.cached == length
    with torch.inference_mode():
        expected = tiny_hybrid(family, window)(torch.tensor([tokens])).logits[0, -1]
    assert_close(logits, expected, 1e-4)


@settings(max_examples=40, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    window=windows,
    geometry=geometries,
    length=st.integers(1, 90),
)
def test_a_sliding_layer_holds_its_newest_tokens_bit_for_bit(family, window, geometry, length):
    """Values are as they were written; keys too, as long as the other layers have room."""
    engine = engine_for(family, window, geometry)
    layers, session = sliding_layers(engine), Session(engine)
    written: dict[str, list[np.ndarray]] = {f"{x}_cache_{i}": [] for x in "kv" for i in layers}
    for token in random_tokens(length):
        session.append([token])
        for name, rows in written.items():
            last = int(session.state.length[int(name[-1])]) - 1
            rows.append(session.state.arrays[name][0, :, last].copy())
    for name, rows in written.items():
        layer = int(name[-1])
        held = int(session.state.length[layer])
        assert min(window - 1, length) <= held <= window - 1 + geometry.segment_length
        if name.startswith("v") or length <= geometry.capacity or not moves(engine, layer):
            expected = np.stack(rows[length - held :], axis=1)
            np.testing.assert_array_equal(session.state.arrays[name][0, :, :held], expected)


def moves(engine: TorchEngine, layer: int) -> bool:
    """Whether a layer's keys are turned when the residual moves."""
    facts = engine.model.edgeinfinite_architecture
    return facts.layers[layer].rotary


def test_its_capacity_is_its_window_and_a_segment_whatever_the_other_layers_have():
    for slots, length in ((0, 5), (12, 5), (12, 50)):
        geometry = geometry_of(3, slots, 4, length)
        engine = engine_for("Gemma3", 7, geometry)
        shapes = {spec.name: spec.shape for spec in engine.new_state().specs}
        others = geometry.capacity
        sizes = [shapes[f"k_cache_{layer}"][2] for layer in range(LAYERS)]
        assert sizes == [10, others, 10, others]
        scored = [layer for layer in range(LAYERS) if f"scores_{layer}" in shapes]
        assert scored == ([1, 3] if slots else [])


def reference(tokens: list[int], window: int, sinks: int, recent: int) -> np.ndarray:
    """Token by token: a full layer sees sinks and the newest, a sliding one its window.

    In a full layer keys are turned to their slots; in a sliding layer to the places that they have
    before the newest token.
    """
    model: Any = tiny_hybrid("Qwen2", window)

    def drop(layer: int, kept: list) -> None:
        slides = model.config.layer_types[layer] == "sliding_attention"
        if slides and len(kept) > window:
            del kept[0]
        if not slides and len(kept) > sinks + recent:
            del kept[sinks]

    return read_in_a_plain_loop(model, tokens, drop)


@pytest.mark.parametrize(
    ("window", "sinks", "recent"), [(3, 2, 5), (7, 0, 4), (12, 2, 3), (2, 1, 1)]
)
def test_long_texts_are_read_as_a_plain_loop_reads_them(window, sinks, recent):
    tokens = random_tokens(40)
    with torch.inference_mode():
        expected = reference(tokens, window, sinks, recent + 1)
    session = Session(engine_for("Qwen2", window, geometry_of(sinks, 0, 1, recent)))
    for token, row in zip(tokens, expected, strict=True):
        assert_close(session.append([token]), row, 1e-4)


@pytest.mark.parametrize("family", ["Mistral", "Phi3"])
def test_where_every_layer_slides_any_text_is_read_as_the_backbone_reads_it(family):
    """Sinks and W are of no use there, so they aren't kept."""
    model = tiny_hybrid(family, 7)
    engine = TorchEngine(attach(model, EdgeInfiniteConfig(geometry_of(3, 0, 4, 5), NO_GATE)))
    assert config_of(model).geometry == geometry_of(0, 0, 4, 6)
    tokens = random_tokens(90)
    session = Session(engine, chunk_length=5)
    session.append(tokens[:70])
    base = tiny_hybrid(family, 7)
    for end in range(71, 91):
        logits = session.append(tokens[end - 1 : end])
        with torch.inference_mode():
            expected = base(torch.tensor([tokens[:end]])).logits[0, -1]
        assert_close(logits, expected, 1e-4)


def test_sessions_are_restored_and_wrong_counters_refused(tmp_path):
    engine = engine_for("Gemma2", 7, geometry_of(2, 6, 3, 5))
    session = Session(engine)
    session.append(random_tokens(50))
    path = tmp_path / "a.session"
    save_session(session, path)
    restored, _ = load_session(engine, path)
    more = random_tokens(20, seed=1)
    np.testing.assert_array_equal(restored.append(more), session.append(more))
    layer = sliding_layers(engine)[0]
    for wrong in (5, 10):
        session.state.length[layer] = wrong
        save_session(session, path)
        with pytest.raises(EdgeInfiniteError, match="sliding window"):
            load_session(engine, path)
