"""A session on disk goes on exactly where it was, or is refused whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session import Cancelled, Session
from tiny import attached, random_tokens

ENGINE = TorchEngine(attached(Geometry(8, 4, 3)))


@pytest.fixture
def saved(tmp_path):
    session = Session(ENGINE)
    session.append(random_tokens(33))
    save_session(session, tmp_path / "s.safetensors", extra={"title": "a text"})
    return tmp_path / "s.safetensors"


@settings(max_examples=40, deadline=None)
@given(before=st.integers(1, 40), after=st.integers(1, 20))
def test_a_restored_session_goes_on_bit_for_bit(tmp_path_factory, before, after):
    path = tmp_path_factory.mktemp("sessions") / "s.safetensors"
    tokens = random_tokens(before + after)
    session = Session(ENGINE)
    session.append(tokens[:before])
    save_session(session, path)
    restored, _ = load_session(ENGINE, path)
    assert restored.compressions == session.compressions
    np.testing.assert_array_equal(restored.append(tokens[before:]), session.append(tokens[before:]))


def test_what_a_cancelled_reading_left_is_kept(tmp_path):
    session = Session(ENGINE, chunk_length=2)
    with pytest.raises(Cancelled):
        session.append(random_tokens(30), cancelled=lambda: session.tokens_read >= 6)
    save_session(session, tmp_path / "s")
    restored, _ = load_session(ENGINE, tmp_path / "s", chunk_length=2)
    np.testing.assert_array_equal(restored.append([]), session.append([]))


def test_the_callers_own_metadata_comes_back_and_only_used_slots_are_stored(saved):
    session, extra = load_session(ENGINE, saved)
    assert extra == {"title": "a text"}
    assert load_file(saved)["k_cache_0"].shape[2] == session.cached < ENGINE.geometry.capacity


def test_saving_replaces_the_file_and_leaves_nothing_beside_it(saved):
    session, _ = load_session(ENGINE, saved)
    session.append(random_tokens(3))
    save_session(session, saved)
    assert load_session(ENGINE, saved)[0].tokens_read == 36
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_a_truncated_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(EdgeInfiniteError, match="not a whole session file"):
        load_session(ENGINE, saved)


def rewrite(path, change):
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    tensors, header = load_file(path), json.loads(metadata["edgeinfinite"])
    change(tensors, header)
    save_file(tensors, path, metadata={**metadata, "edgeinfinite": json.dumps(header)})


def nan_in_memory(tensors, header):
    tensors["memory"][0, 0, 0, 0] = np.nan


def lost_tensor(tensors, header):
    del tensors["v_cache_1"]


def wrong_shape(tensors, header):
    tensors["k_cache_0"] = tensors["k_cache_0"][:, :, :-1].copy()


def wrong_length(tensors, header):
    tensors["length"][:] = 10_000


def wrong_counter(tensors, header):
    header["compressions"] += 1


@pytest.mark.parametrize(
    "change", [nan_in_memory, lost_tensor, wrong_shape, wrong_length, wrong_counter]
)
def test_a_damaged_state_is_refused(saved, change):
    rewrite(saved, change)
    with pytest.raises(EdgeInfiniteError, match="not a whole session file"):
        load_session(ENGINE, saved)


@pytest.mark.parametrize(
    ("version", "says"), [(1, "start a new session"), (99, "update edgeinfinite")]
)
def test_another_format_is_refused(saved, version, says):
    rewrite(saved, lambda tensors, header: header.update(format=version))
    with pytest.raises(EdgeInfiniteError, match=says):
        load_session(ENGINE, saved)


@pytest.mark.parametrize(
    "other", [attached(Geometry(8, 4, 2)), attached(Geometry(8, 4, 3), open_gates=False)]
)
def test_another_geometry_or_gate_is_refused(saved, other):
    with pytest.raises(EdgeInfiniteError, match="another model, gate, scorer or geometry"):
        load_session(TorchEngine(other), saved)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(EdgeInfiniteError, match="doesn't exist"):
        load_session(ENGINE, tmp_path / "none")
