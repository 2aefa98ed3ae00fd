"""Policy `carry`: the window slides, and recall slots keep the highest-ranked pairs."""

from __future__ import annotations

import dataclasses
import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_loop import read_in_a_plain_loop
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.scorer import KEEP_ALL
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, attached, random_tokens, tiny_llama


def geometry_of(sinks: int, slots: int | tuple[int, int], segment: int, window: int) -> Geometry:
    return Geometry(segment, sinks, window, policy="carry", recall_slots=slots)


geometries = st.builds(
    lambda sinks, rounds, segment, window: geometry_of(
        sinks, (rounds[0] * segment, rounds[1] * segment), segment, window
    ),
    st.integers(0, 4),
    st.one_of(
        st.integers(0, 3).map(lambda rounds: (rounds, rounds)),  # the same in both layers
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
    ),
    st.integers(1, 7),
    st.integers(1, 8),
)


@cache
def engine_for(geometry: Geometry, gate: str = "untrained") -> TorchEngine:
    return TorchEngine(attached(geometry, gate=gate))


def ruled(geometry: Geometry, rule: RankRule) -> PreTrainedModel:
    """A model of its own whose scores rank pairs by another rule than the default."""
    model = attached(geometry, gate=NO_GATE)
    model.edgeinfinite_rank_rule = rule  # type: ignore[assignment]
    return model


def straight(engine: TorchEngine, tokens: list[int]) -> tuple[Session, np.ndarray]:
    session = Session(engine, chunk_length=1000)
    return session, session.append(tokens)


@settings(max_examples=100, deadline=None)
@given(
    geometry=geometries,
    pieces=st.lists(st.integers(1, 25), min_size=1, max_size=5),
    chunk_length=st.integers(1, 12),
    decoded=st.integers(0, 20),
)
def test_any_split_gives_the_same_state(geometry, pieces, chunk_length, decoded):
    engine = engine_for(geometry)
    tokens = random_tokens(sum(pieces) + decoded)
    whole, expected = straight(engine, tokens)
    session, start = Session(engine, chunk_length=chunk_length), 0
    for piece in [*pieces, *[1] * decoded]:
        logits = session.append(tokens[start : start + piece])
        start += piece
    assert_close(logits, expected)
    assert (session.tokens_read, session.compressions) == (whole.tokens_read, whole.compressions)
    assert (session.residual, session.cached) == (whole.residual, whole.cached)
    for name, array in session.state.arrays.items():
        used = ...
        if "_cache_" in name:
            used = (..., slice(int(session.state.length[int(name[-1])])), slice(None))
        assert_close(array[used], whole.state.arrays[name][used])


@settings(max_examples=40, deadline=None)
@given(geometry=geometries, length=st.integers(1, 60))
def test_up_to_the_capacity_attention_is_exact(geometry, length):
    """Without a gate; with one the memory is read from the first compression on."""
    length = min(length, *geometry.capacities(2))
    tokens = random_tokens(length)
    session, logits = straight(engine_for(geometry, NO_GATE), tokens)
    assert session.cached == length
    with torch.inference_mode():
        expected = tiny_llama()(torch.tensor([tokens])).logits[0, -1]
    assert_close(logits, expected)


@settings(max_examples=40, deadline=None)
@given(geometry=geometries, length=st.integers(1, 90))
def test_the_cache_holds_sinks_then_slots_then_the_newest_tokens(geometry, length):
    session, _ = straight(engine_for(geometry), random_tokens(length))
    most = geometry.window_length + geometry.segment_length
    if length > geometry.sink_length + most:
        assert geometry.window_length < len(session.residual) <= most
    assert session.residual == random_tokens(length)[length - len(session.residual) :]
    assert session.cached <= geometry.capacity


@settings(max_examples=40, deadline=None)
@given(geometry=geometries, length=st.integers(1, 120), one=st.booleans())
def test_streaming_heads_have_a_longer_window(geometry, length, one):
    """All heads: the window is longer by the slots. One of two: the other's slots are as before."""
    if geometry.varies:
        slots = geometry.recall_slots[0]
        geometry = dataclasses.replace(geometry, recall_slots=slots)
    model = attached(geometry, gate=NO_GATE)
    for layer in model.model.layers:
        if geometry.most_slots:
            layer.self_attn.retention_scorer.make_streaming(torch.tensor([True, not one]))
    tokens = random_tokens(length)
    by_age, logits = straight(TorchEngine(model), tokens)
    window = geometry.window_length + geometry.most_slots
    longer = dataclasses.replace(geometry, recall_slots=0, window_length=window)
    session, expected = straight(engine_for(longer, NO_GATE), tokens)
    assert by_age.cached == session.cached
    heads = slice(0, 1) if one else slice(None)
    name, used = "v_cache_0", slice(session.cached)  # deeper layers see what the other head found
    assert_close(
        by_age.state.arrays[name][:, heads, used], session.state.arrays[name][:, heads, used]
    )
    if not one:
        assert_close(logits, expected)


def streaming_llm(tokens: list[int], sinks: int, recent: int) -> np.ndarray:
    """StreamingLLM by definition: each token sees the first `sinks` and the newest `recent`."""

    def drop(_: int, kept: list) -> None:
        if len(kept) > sinks + recent:
            del kept[sinks]

    return read_in_a_plain_loop(tiny_llama(), tokens, drop)


@pytest.mark.parametrize(("sinks", "window"), [(4, 7), (0, 5), (1, 1)])
def test_without_slots_and_with_segments_of_one_it_is_streaming_llm(sinks, window):
    tokens = random_tokens(40)
    with torch.inference_mode():
        expected = streaming_llm(tokens, sinks, window + 1)
    session = Session(engine_for(geometry_of(sinks, 0, 1, window), NO_GATE))
    for token, row in zip(tokens, expected, strict=True):
        assert_close(session.append([token]), row)


def test_slots_hold_the_best_pairs_in_the_texts_order_and_none_twice():
    """Followed by the values, which no rotation changes: each slot's value is that of one token."""
    geometry = geometry_of(3, 6, 3, 5)
    engine = engine_for(geometry, NO_GATE)
    session, values = Session(engine), []
    for token in random_tokens(60):
        session.append([token])
        values.append(session.state.arrays["v_cache_1"][0, :, session.cached - 1].copy())
    stored = session.state.arrays["v_cache_1"][0]
    kept_by_head = []
    for head in range(stored.shape[0]):
        origin = [
            [t for t, value in enumerate(values) if np.array_equal(value[head], stored[head, slot])]
            for slot in range(session.cached)
        ]
        assert all(len(tokens) == 1 for tokens in origin)
        order = [tokens[0] for tokens in origin]
        assert order == sorted(set(order))
        assert order[:3] == [0, 1, 2] and order[9:] == list(range(60 - len(order[9:]), 60))
        kept_by_head.append(order[3:9])
    assert kept_by_head[0] != kept_by_head[1]


@pytest.mark.parametrize("worth", [KEEP_ALL, 11.15, 11.3])
def test_the_highest_ranked_pairs_stay_if_above_the_threshold(worth):
    """Scorers that look at the value's first number alone. Most of a score is what all heads of all
    layers find on average; neighbours' count by half. Five stay in any case."""
    rule = RankRule(ranked_slots=5, newest_share=0)
    model = ruled(geometry_of(2, 30, 3, 4), rule)
    for layer in model.model.layers:
        scorer = layer.self_attn.retention_scorer
        dim = scorer.w1.shape[1] // 2
        for parameter in scorer.parameters():
            parameter.zero_()
        scorer.w1[:, dim, 0], scorer.w2[:, 0] = 1.0, 1.0
        scorer.b1[:] = 10.0  # away from the ReLU's corner
        scorer.keep_threshold[:] = worth
    session, firsts = Session(TorchEngine(model)), []
    for token in random_tokens(150):
        session.append([token])
        last = session.cached - 1
        caches = (session.state.arrays[f"v_cache_{layer}"] for layer in range(2))
        firsts.append([cache[0, :, last, 0].copy() for cache in caches])
    left = np.array(firsts[2 : 150 - len(session.residual)])  # tokens, layers, heads
    own, all_heads = left[:, 0, 1], left.mean((1, 2))
    left = (1 - rule.pooled_share) * own + rule.pooled_share * all_heads
    kept, near = np.arange(30), rule.neighbours
    for end in range(33, len(left) + 1, 3):
        candidates = np.array([*kept, *range(end - 3, end)])
        score = left[candidates]
        best = [score[max(0, i - near) : i + near + 1].max() for i in range(33)]
        plain = (score + best) / 2
        rank = plain + rule.recency * np.arange(33)
        worth_it = (10 + plain > worth) | (rank >= np.sort(rank)[-5])
        rank = np.where(worth_it, rank, rule.recency * np.arange(33) - 1000)
        kept = candidates[np.sort(np.argsort(rank)[-30:])]
        for_being_new = 30 - min(30, worth_it.sum())
    if worth == KEEP_ALL:
        assert not set(kept) & set(np.argsort(left)[:20])  # the worst are gone
    else:
        assert 3 <= for_being_new <= 27
    slots = session.state.arrays["v_cache_0"][0, 1, 2:32, 0]
    np.testing.assert_array_equal(slots, own[kept])
    stored = session.state.arrays["scores_0"][0, 1]
    np.testing.assert_allclose(stored, 10 + left[kept], rtol=1e-5)


@pytest.mark.parametrize(("slots", "segment"), [(12, 3), ((12, 6), 3), (8, 8)])
def test_with_many_slots_some_hold_the_newest_pairs_for_any_split(slots, segment):
    engine = TorchEngine(ruled(geometry_of(2, slots, segment, 5), RankRule(ranked_slots=4)))
    tokens = random_tokens(90)
    whole, _ = straight(engine, tokens)
    session, values = Session(engine), []
    for token in tokens:
        session.append([token])
        last = int(session.state.length[0]) - 1
        values.append(session.state.arrays["v_cache_0"][0, :, last].copy())
    assert_close(session.state.arrays["v_cache_0"], whole.state.arrays["v_cache_0"])
    first = slots if isinstance(slots, int) else slots[0]
    end, newest = 90 - len(session.residual), min(first // 2, first - 4)
    expected = np.stack(values[end - newest : end], axis=1)
    stored = session.state.arrays["v_cache_0"][0, :, 2 : 2 + first]
    assert_close(stored[:, first - newest :], expected)
    older = np.stack(values[end - first : end - newest], axis=1)
    assert not np.allclose(stored[:, : first - newest], older)  # these are filled by rank


@pytest.mark.parametrize("slots", [12, (12, 6)])
def test_pairs_above_the_threshold_do_not_depend_on_the_split(slots):
    rule = RankRule(ranked_slots=3, newest_share=0.25)
    engine = TorchEngine(ruled(geometry_of(2, slots, 3, 5), rule))
    tokens = random_tokens(90)
    all_by_rank, _ = straight(engine, tokens)
    for index, layer in enumerate(engine.model.model.layers):
        scores = torch.from_numpy(all_by_rank.state.arrays[f"scores_{index}"][0])
        layer.self_attn.retention_scorer.keep_threshold.copy_(scores.quantile(0.7, -1, True))
    whole, expected = straight(engine, tokens)
    for chunk_length in (1, 2, 7):
        session = Session(engine, chunk_length=chunk_length)
        assert_close(session.append(tokens), expected)
        for name, array in whole.state.arrays.items():
            assert_close(session.state.arrays[name], array)
    scores = (s.state.arrays["scores_0"] for s in (whole, all_by_rank))
    assert not np.allclose(*scores)


def test_a_key_moved_many_times_equals_the_key_computed_at_its_new_position():
    table = rotary_tables(tiny_llama(), 500)[0]
    torch.manual_seed(0)
    raw = torch.randn(1, 2, 1, 8)
    rotary = tiny_llama().model.rotary_emb
    at = lambda position: apply_rotary_pos_emb(  # noqa: E731
        raw, raw, *rotary(raw, torch.tensor([[position]]))
    )[1]
    moved = at(480)[0]
    for step in [1, 2, 100, 7] * 4:
        moved = table.shift_back(moved, torch.tensor([step]))
    torch.testing.assert_close(moved, at(480 - 440)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("slots", [(0, 9), (9, 3), (6, 0)])
def test_layers_with_different_slots_hold_the_same_total_as_with_equal_slots(slots):
    """The first layer doesn't depend on the second: it must hold what a model of its budget holds,
    followed by the values; and the second layer has filled its own budget."""
    tokens = random_tokens(70)
    session, _ = straight(engine_for(geometry_of(3, slots, 3, 5), NO_GATE), tokens)
    alone, _ = straight(engine_for(geometry_of(3, slots[0], 3, 5), NO_GATE), tokens)
    used = alone.cached
    assert session.state.length.tolist() == [used, used - slots[0] + slots[1]]
    stored, expected = (s.state.arrays["v_cache_0"][0, :, :used] for s in (session, alone))
    np.testing.assert_allclose(stored, expected, atol=1e-5)
    sizes = [session.state.arrays[f"k_cache_{layer}"].shape[2] for layer in range(2)]
    assert sizes == [11 + count for count in slots]


def test_keys_stand_at_the_positions_that_their_layers_layout_gives_them():
    """Sinks from 0 on, the residual where the longest cache has it, and slots behind the sinks, or
    in heads that keep what is newest before the residual."""
    geometry = geometry_of(3, (9, 3), 3, 5)
    model = attached(geometry, gate=NO_GATE)
    model.model.layers[1].self_attn.retention_scorer.make_streaming(torch.tensor([False, True]))
    session, raw = Session(TorchEngine(model)), []
    table = rotary_tables(tiny_llama(), 64)[1]
    for token in random_tokens(70):
        session.append([token])
        position = torch.tensor([session.cached - 1])
        slot = int(session.state.length[1]) - 1
        key = torch.from_numpy(session.state.arrays["k_cache_1"][0, :, slot : slot + 1].copy())
        raw.append(
            (table.shift_back(key, position), session.state.arrays["v_cache_1"][0, :, slot].copy())
        )
    used = int(session.state.length[1])
    for head, behind_the_sinks in enumerate((6, 3)):
        stored = torch.from_numpy(session.state.arrays["k_cache_1"][0, head, :used])
        end = range(session.cached - (used - behind_the_sinks), session.cached)
        unrotated = table.shift_back(stored[None], torch.tensor([*range(behind_the_sinks), *end]))
        values = session.state.arrays["v_cache_1"][0, head, :used]
        for key, value in zip(unrotated[0], values, strict=True):
            found = [k[head, 0] for k, v in raw if np.array_equal(v[head], value)]
            assert len(found) == 1
            torch.testing.assert_close(key, found[0], rtol=1e-4, atol=1e-4)


def test_recall_slots_without_a_scorer_or_under_reencode_are_refused():
    with pytest.raises(EdgeInfiniteError, match="need a retention scorer"):
        attach(tiny_llama(), EdgeInfiniteConfig(geometry_of(2, 6, 3, 4)))
    with pytest.raises(EdgeInfiniteError, match="no recall slots"):
        Geometry(8, 4, 3, recall_slots=5)
    with pytest.raises(EdgeInfiniteError, match="choose 8"):
        geometry_of(4, 9, 8, 3)
    with pytest.raises(EdgeInfiniteError, match="choose 8"):
        geometry_of(4, (16, 9), 8, 3)
    with pytest.raises(EdgeInfiniteError, match="3 layers, the model has 2"):
        attach(
            tiny_llama(), EdgeInfiniteConfig(geometry_of(2, (6, 3, 3), 3, 4), scorer="untrained")
        )


def test_equal_budgets_are_one_number_and_lists_survive_the_manifest():
    assert geometry_of(4, (8, 8), 8, 3) == geometry_of(4, 8, 8, 3)
    geometry = geometry_of(4, (8, 0), 8, 3)
    assert Geometry.from_dict(json.loads(json.dumps(geometry.to_dict()))) == geometry


@pytest.mark.parametrize("slots", [6, (0, 9)])
def test_a_saved_session_resumes_with_slots_by_layer(slots, tmp_path):
    engine = engine_for(geometry_of(2, slots, 3, 4))
    session, _ = straight(engine, random_tokens(40))
    save_session(session, tmp_path / "session")
    restored, _ = load_session(engine, tmp_path / "session")
    assert_close(restored.append([5, 6]), session.append([5, 6]))
    assert restored.state.length.tolist() == session.state.length.tolist()
