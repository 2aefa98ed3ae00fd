"""Forks of a session: independent, exact, and without a copy until one of them reads."""

from __future__ import annotations

import gc
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Cancelled, Session
from tiny import attached, random_tokens

geometries = st.one_of(
    st.builds(
        Geometry,
        sink_length=st.integers(0, 4),
        segment_length=st.integers(1, 7),
        window_length=st.integers(1, 9),
    ),
    st.builds(
        Geometry,
        sink_length=st.integers(0, 4),
        segment_length=st.integers(1, 7),
        window_length=st.integers(1, 9),
        policy=st.just("carry"),
    ),
)
GEOMETRY = Geometry(sink_length=2, segment_length=4, window_length=5, policy="carry")


@cache
def engine_for(geometry: Geometry) -> TorchEngine:
    return TorchEngine(attached(geometry, gate="untrained"))


def content(session: Session) -> dict[str, bytes]:
    """Every array as far as it is in use, and every counter, as bytes."""
    state = session.state
    arrays = {spec.name: state.in_use(spec).tobytes() for spec in state.specs}
    counters = [session.tokens_read, session.compressions, *session.residual]
    return arrays | {"counters": repr(counters).encode(), "unread": session.unread.tobytes()}


def read(tokens: list[int], geometry: Geometry = GEOMETRY) -> Session:
    session = Session(engine_for(geometry), chunk_length=5)
    session.append(tokens)
    return session


@settings(deadline=None, max_examples=25)
@given(geometry=geometries, before=st.integers(1, 40), after=st.integers(1, 40))
def test_a_fork_equals_reading_anew(geometry: Geometry, before: int, after: int) -> None:
    tokens = random_tokens(before + 2 * after)
    first, second = tokens[before : before + after], tokens[before + after :]
    session = read(tokens[:before], geometry)
    fork = session.fork()

    one, other = session.append(first), fork.append(second)

    for logits, forked, rest in ((one, session, first), (other, fork, second)):
        alone = read(tokens[:before], geometry)
        np.testing.assert_array_equal(logits, alone.append(rest))
        assert content(forked) == content(alone)


def test_a_fork_keeps_what_was_read_before_the_turn_bit_for_bit() -> None:
    session = read(random_tokens(30))
    before, snapshot = content(session), session.fork()

    session.append(random_tokens(21))

    assert content(session) != before
    assert content(snapshot) == before


def test_forks_share_their_arrays_until_one_reads() -> None:
    session = read(random_tokens(30))
    forks = [session.fork() for _ in range(3)]
    mine = session.state
    assert all(fork.state is mine for fork in forks)

    session.append([1])

    assert session.state is mine, "the arrays that the engine has bound stay with the reader"
    assert forks[0].state is forks[1].state is forks[2].state is not mine

    forks[0].append([2])

    assert forks[0].state is not forks[1].state is forks[2].state


def test_a_fork_that_was_dropped_costs_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    session = read(random_tokens(30))
    session.fork()
    gc.collect()
    monkeypatch.setattr(type(session.state), "copy", lambda _: pytest.fail("copied"))

    session.append([1])


def test_a_fork_keeps_the_tokens_that_a_cancelled_reading_left() -> None:
    tokens = random_tokens(30)
    session = Session(engine_for(GEOMETRY), chunk_length=5)
    with pytest.raises(Cancelled):
        session.append(tokens, cancelled=lambda: session.tokens_read > 10)
    fork = session.fork()
    session.drop_unread()

    fork.append([])

    assert content(fork) == content(read(tokens))


def test_going_back_to_a_fork_restores_every_array_bit_for_bit() -> None:
    session = read(random_tokens(30))
    before, fork = content(session), session.fork()
    session.append(random_tokens(21))

    session.go_back(fork)
    assert content(session) == before

    session.append(random_tokens(9, seed=1))
    assert content(fork) == before, "the fork can be gone back to again"
    alone = read(random_tokens(30))
    alone.append(random_tokens(9, seed=1))
    assert content(session) == content(alone)


def test_a_session_that_went_back_has_nothing_to_do_with_its_other_forks() -> None:
    session = read(random_tokens(30))
    early = session.fork()
    session.append(random_tokens(9))
    late = session.fork()
    session.go_back(early)
    before = content(session)

    late.append([1, 2, 3])

    assert content(session) == content(early) == before
