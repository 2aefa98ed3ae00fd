"""Algorithm 1: only the tokens decide the state (docs/develop/architecture.md, invariant 1)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.configuration import NO_GATE
from edgeinfinite.models.state import TensorState
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Cancelled, Session
from tiny import assert_close, attached, random_tokens, tiny_llama

geometries = st.builds(
    Geometry,
    sink_length=st.integers(0, 5),
    segment_length=st.integers(1, 9),
    window_length=st.integers(1, 12),
)


@cache
def engine_for(geometry: Geometry, gate: str = "untrained") -> TorchEngine:
    return TorchEngine(attached(geometry, gate=gate))


def assert_same_session(one: Session, other: Session) -> None:
    """Equal M, z, caches as far as they are in use, and counters."""
    assert one.tokens_read == other.tokens_read
    assert one.compressions == other.compressions
    assert one.residual == other.residual
    assert one.cached == other.cached
    for name, array in one.state.arrays.items():
        used = (..., slice(one.cached), slice(None)) if "_cache_" in name else ...
        assert_close(array[used], other.state.arrays[name][used])


def straight(engine: TorchEngine, tokens: list[int]) -> tuple[Session, np.ndarray]:
    session = Session(engine, chunk_length=1000)
    return session, session.append(tokens)


def literal_algorithm(engine: TorchEngine, tokens: list[int]) -> tuple[TensorState, torch.Tensor]:
    """The definition itself, by brute force: whole segments, and M, z summed token by token."""
    geometry = engine.geometry
    n_sinks, n_segment = geometry.sink_length, geometry.segment_length
    shared = engine._shared(engine.new_state())
    body = tokens[n_sinks:]
    segments = max(0, (len(body) - geometry.window_length) // n_segment)
    if not segments:
        logits = run_tokens(engine.model, torch.tensor([tokens]), shared)
        shared.length += len(tokens)
        return shared, logits[0, -1]
    if n_sinks:
        run_tokens(engine.model, torch.tensor([tokens[:n_sinks]]), shared)
    shared.length[:] = n_sinks
    for index in range(segments):
        segment = body[index * n_segment : (index + 1) * n_segment]
        run_tokens(engine.model, torch.tensor([segment]), shared)
        for layer in range(len(shared.k_cache)):
            for slot in range(n_sinks, n_sinks + n_segment):
                for head in range(shared.memory.shape[1]):
                    key = shared.k_cache[layer][0, head, slot]
                    value = shared.v_cache[layer][0, head, slot]
                    feature = torch.where(key > 0, key + 1, key.exp())
                    shared.memory[layer, head] += torch.outer(feature, value)
                    shared.memory_norm[layer, head] += feature
        shared.has_memory[:] = 1
    rest = body[segments * n_segment :]
    logits = run_tokens(engine.model, torch.tensor([rest]), shared)
    shared.length += len(rest)
    return shared, logits[0, -1]


@settings(max_examples=60, deadline=None)
@given(geometry=geometries, length=st.integers(1, 60), seed=st.integers(0, 3))
def test_state_and_logits_equal_algorithm_1_run_literally(geometry, length, seed):
    engine = engine_for(geometry)
    tokens = random_tokens(length, seed)
    session, logits = straight(engine, tokens)
    with torch.inference_mode():
        expected, expected_logits = literal_algorithm(engine, tokens)
    assert_close(logits, expected_logits)
    assert_close(session.state.arrays["memory"], expected.memory)
    assert_close(session.state.arrays["memory_norm"], expected.memory_norm)
    assert session.cached == int(expected.length[0])
    for layer, keys in enumerate(expected.k_cache):
        used = slice(session.cached)
        assert_close(session.state.arrays[f"k_cache_{layer}"][:, :, used], keys[:, :, used])


@settings(max_examples=120, deadline=None)
@given(
    geometry=geometries,
    pieces=st.lists(st.integers(1, 25), min_size=1, max_size=6),
    chunk_length=st.integers(1, 12),
    decoded=st.integers(0, 25),
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
    assert_same_session(session, whole)


@pytest.mark.parametrize("geometry", [Geometry(8, 4, 3), Geometry(4, 0, 9), Geometry(1, 2, 1)])
def test_every_prefill_length_then_decode_crosses_every_boundary_alike(geometry):
    engine = engine_for(geometry)
    total = geometry.capacity + 2 * geometry.segment_length + 2
    tokens = random_tokens(total)
    whole, expected = straight(engine, tokens)
    for prompt in range(1, total):
        session = Session(engine)
        session.append(tokens[:prompt])
        for token in tokens[prompt:]:
            logits = session.append([token])
        assert_close(logits, expected)
        assert_same_session(session, whole)


@settings(max_examples=60, deadline=None)
@given(geometry=geometries, length=st.integers(1, 90))
def test_cache_holds_everything_below_capacity_and_sinks_and_residual_from_it_on(geometry, length):
    session, _ = straight(engine_for(geometry), random_tokens(length))
    residual = len(session.residual)
    if length < geometry.capacity:
        assert session.cached == length and session.compressions == 0
        assert session.state.has_memory[0] == 0
    else:
        assert session.cached == geometry.sink_length + residual
        assert geometry.window_length <= residual < geometry.window_length + geometry.segment_length
        assert session.compressions * geometry.segment_length + session.cached == length
        assert session.state.has_memory[0] == 1
    assert session.tokens_read == length


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_a_short_prompt_equals_the_base_model_to_the_last_slot(kv_heads):
    geometry = Geometry(segment_length=16, sink_length=4, window_length=8)
    base = tiny_llama(heads=4, kv_heads=kv_heads)
    engine = TorchEngine(attached(geometry, heads=4, kv_heads=kv_heads))
    tokens = random_tokens(geometry.capacity - 1)
    session = Session(engine, chunk_length=5)
    session.append(tokens[:7])
    for end in range(8, len(tokens) + 1):
        logits = session.append(tokens[end - 1 : end])
        with torch.inference_mode():
            expected = base(torch.tensor([tokens[:end]])).logits[0, -1]
        assert_close(logits, expected)


def test_a_memory_of_ones_reads_the_same_before_the_first_compression():
    """has_memory = 0 bypasses the memory whatever stands in it (Eq. 10)."""
    engine = engine_for(Geometry(8, 4, 3))
    clean, dirty = Session(engine), Session(engine)
    dirty.state.arrays["memory"][:] = 1.0
    tokens = random_tokens(9)
    np.testing.assert_array_equal(clean.append(tokens), dirty.append(tokens))


def test_after_a_compression_the_memory_changes_the_logits():
    engine = engine_for(Geometry(8, 4, 3))
    tokens = random_tokens(40)
    session, expected = straight(engine, tokens[:-1])[0], straight(engine, tokens)[1]
    session.state.arrays["memory"][:] *= 0.5
    assert np.abs(session.append(tokens[-1:]) - expected).max() > 1e-3


def test_without_a_gate_nothing_is_compressed_and_old_segments_are_forgotten():
    geometry = Geometry(8, 4, 3)
    engine = engine_for(geometry, NO_GATE)
    tokens = random_tokens(40)
    session, logits = straight(engine, tokens)
    assert "memory" not in session.state.arrays and session.compressions > 0
    sinks, rest = tokens[:4], tokens[4 + 8 * session.compressions :]
    assert_close(logits, straight(engine, sinks + rest)[1])


def test_state_bytes_do_not_grow():
    engine = engine_for(Geometry(64, 4, 8))
    session = Session(engine)
    session.append(random_tokens(300))
    before = session.state_bytes, {n: a.ctypes.data for n, a in session.state.arrays.items()}
    session.append(random_tokens(20_000))
    assert before == (
        session.state_bytes,
        {n: a.ctypes.data for n, a in session.state.arrays.items()},
    )
    assert session.state_bytes == sum(array.nbytes for array in session.state.arrays.values())


@settings(max_examples=60, deadline=None)
@given(geometry=geometries, length=st.integers(2, 60), stop_after=st.integers(0, 12))
def test_a_cancelled_reading_resumes_to_the_same_state(geometry, length, stop_after):
    engine = engine_for(geometry)
    tokens = random_tokens(length)
    whole, expected = straight(engine, tokens)
    session, asked = Session(engine, chunk_length=4), 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > stop_after

    try:
        logits = session.append(tokens, cancelled=cancelled)
    except Cancelled:
        assert session.tokens_read + len(session.unread) == length
        logits = session.append([])
    assert_close(logits, expected)
    assert_same_session(session, whole)


def test_unread_tokens_can_be_dropped():
    engine = engine_for(Geometry(8, 4, 3))
    session = Session(engine, chunk_length=4)
    session.append(random_tokens(6))
    with pytest.raises(Cancelled):
        session.append(random_tokens(30), cancelled=lambda: True)
    session.drop_unread()
    assert session.tokens_read == 6
    with pytest.raises(EdgeInfiniteError, match="no token"):
        session.append([])


@settings(max_examples=40, deadline=None)
@given(geometry=geometries, pieces=st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_progress_sums_to_the_number_of_tokens(geometry, pieces):
    session, seen = Session(engine_for(geometry), chunk_length=5), []
    for index, piece in enumerate(pieces):
        session.append(random_tokens(piece, index), progress=seen.append)
        assert sum(seen) == session.tokens_read == sum(pieces[: index + 1])
    assert all(step > 0 for step in seen)


def test_a_failing_engine_does_not_change_the_session():
    engine = TorchEngine(attached(Geometry(8, 4, 3)))
    tokens = random_tokens(30)
    expected = straight(engine, tokens)[1]
    session = Session(engine, chunk_length=3)
    working, calls = engine.prefill_segment, 0

    def failing(tokens: np.ndarray, state: object) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise RuntimeError("out of memory")
        return working(tokens, state)

    engine.prefill_segment = failing
    with pytest.raises(RuntimeError):
        session.append(tokens)
    assert_close(session.append([]), expected)


@pytest.mark.parametrize("bad", [[-1], [97], [5, 1000]])
def test_a_token_outside_the_vocabulary_is_refused_and_nothing_is_read(bad):
    session = Session(engine_for(Geometry(8, 4, 3)))
    with pytest.raises(EdgeInfiniteError, match="vocabulary"):
        session.append(bad)
    assert session.tokens_read == 0 and not session.unread


def test_chunk_length_below_one_is_refused():
    with pytest.raises(EdgeInfiniteError, match="chunk length"):
        Session(engine_for(Geometry(8, 4, 3)), chunk_length=-1)
