"""Saved states: the longest beginning, budgets, files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.server.state_files import StateFolder
from edgeinfinite.runtime_py.server.states import SavedStates, digests
from edgeinfinite.runtime_py.session.session import Session
from tiny import attached, random_tokens

GEOMETRY = Geometry(sink_length=2, segment_length=4, window_length=5, policy="carry")
MANY = 10**9


@cache
def engine() -> TorchEngine:
    return TorchEngine(attached(GEOMETRY))


def read(tokens: list[int]) -> Session:
    session = Session(engine())
    session.append(tokens)
    return session


def states_with(*texts: list[int], folder: StateFolder | None = None) -> SavedStates:
    states = SavedStates(engine(), MANY, folder)
    for text in texts:
        states.keep(text, read(text), on_disk=folder is not None)
    return states


def same(one: Session, other: Session) -> bool:
    counters = [(s.tokens_read, s.compressions, s.residual) for s in (one, other)]
    return counters[0] == counters[1] and all(
        np.array_equal(one.state.in_use(spec), other.state.in_use(spec)) for spec in one.state.specs
    )


@given(
    kept=st.lists(st.lists(st.integers(3, 5), min_size=1, max_size=6), max_size=6),
    text=st.lists(st.integers(3, 5), min_size=1, max_size=8),
)
def test_the_longest_saved_beginning_is_continued(kept: list[list[int]], text: list[int]) -> None:
    states = states_with(*kept)
    fits = [one for one in kept if len(one) < len(text) and text[: len(one)] == one]
    session = states.continued(text)
    assert session.tokens_read == max(map(len, fits), default=0)
    expected = read(max(fits, key=len)) if fits else Session(engine())
    assert same(session, expected)


def test_what_is_saved_stays_as_it_is_whoever_continues_it() -> None:
    text = random_tokens(20)
    states = states_with(text[:9])
    for _ in range(2):
        session = states.continued(text)
        assert same(session, read(text[:9]))
        session.append(text[9:])
    running = states.continued(text)
    running.append(text[9:])
    states.keep(text, running, on_disk=False)
    running.append([5])
    assert same(states.continued([*text, 4]), _continued(text))


def _continued(text: list[int]) -> Session:
    session = read(text[:9])
    session.append(text[9:])
    return session


def test_the_least_recently_used_states_go_first() -> None:
    texts = [random_tokens(12, seed) for seed in range(3)]
    one = states_with(texts[0]).figures()["bytes"]
    states = SavedStates(engine(), 2 * one)
    for text in texts[:2]:
        states.keep(text, read(text), on_disk=False)
    states.continued([*texts[0], 3])
    states.keep(texts[2], read(texts[2]), on_disk=False)
    assert states.figures() == {"states": 2, "bytes": 2 * one, "files": 0, "file_bytes": 0}
    found = [states.continued([*text, 3]).tokens_read for text in texts]
    assert found == [12, 0, 12]
    nothing = SavedStates(engine(), 0)
    nothing.keep(texts[0], read(texts[0]), on_disk=False)
    assert nothing.figures()["states"] == 0


def test_keys_are_hashes_of_beginnings() -> None:
    tokens = random_tokens(30)
    keys = digests(tokens, [30, 7])
    assert keys == {n: digests(tokens[:n], [n])[n] for n in (7, 30)}
    assert keys[7] != digests([*tokens[:6], tokens[6] + 1], [7])[7]


def test_files_outlive_the_server_and_are_continued_bit_for_bit(tmp_path: Path) -> None:
    text = random_tokens(25)
    states = states_with(text[:11], text[:20], folder=StateFolder(engine(), tmp_path, MANY))
    states.close()
    again = SavedStates(engine(), MANY, StateFolder(engine(), tmp_path, MANY))
    assert again.figures()["files"] == 2 and again.figures()["states"] == 0
    assert same(again.continued(text), read(text[:20]))
    assert again.figures()["states"] == 1
    assert same(again.continued(text[:15]), read(text[:11]))
    again.close()


def test_damaged_files_are_left_out_and_leftovers_removed(tmp_path: Path) -> None:
    text = random_tokens(25)
    states = states_with(text[:11], text[:20], folder=StateFolder(engine(), tmp_path, MANY))
    states.close()
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (longer,) = folder.glob("20-*.session")
    longer.write_bytes(longer.read_bytes()[:-7] + b"damaged")
    leftover = folder / ".20-abc.123.tmp.session"
    leftover.write_bytes(b"half")
    (folder / "notes.txt").write_text("somebody else's")
    again = SavedStates(engine(), MANY, StateFolder(engine(), tmp_path, MANY))
    assert not leftover.exists()
    assert same(again.continued(text), read(text[:11]))
    assert not longer.exists()
    assert (folder / "notes.txt").exists()
    again.close()


def test_the_folder_keeps_to_its_budget_and_to_one_server(tmp_path: Path) -> None:
    text = random_tokens(40)
    folder = StateFolder(engine(), tmp_path, MANY)
    states = states_with(text[:20], folder=folder)
    states.flush(seconds=20)
    size = folder.nbytes
    with pytest.raises(EdgeInfiniteError, match="open in another process"):
        StateFolder(engine(), tmp_path, MANY)
    states.close()
    small = StateFolder(engine(), tmp_path, 2 * size + size // 2)
    states = SavedStates(engine(), MANY, small)
    for length in (21, 22, 23):
        states.keep(text, read(text[:length]), on_disk=True)
        states.flush(seconds=20)
    states.close()
    assert sorted(key[0] for key in small.keys()) == [22, 23]  # noqa: SIM118  (a list)
    assert len(list(tmp_path.rglob("*-*.session"))) == 2


def test_a_full_disk_is_counted_and_the_states_in_memory_stay(tmp_path: Path) -> None:
    text = random_tokens(20)
    folder = StateFolder(engine(), tmp_path, MANY)
    states = SavedStates(engine(), MANY, folder)
    folder.path = tmp_path / "gone"
    states.keep(text, read(text), on_disk=True)
    states.flush(seconds=20)
    assert states.write_errors == 1
    assert states.continued([*text, 3]).tokens_read == 20
    states.close()
