"""A saved session continues exactly where it was, or is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Cancelled, Session
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
def test_a_restored_session_continues_bit_for_bit(tmp_path_factory, before, after):
    path = tmp_path_factory.mktemp("sessions") / "s.safetensors"
    tokens = random_tokens(before + after)
    session = Session(ENGINE)
    session.append(tokens[:before])
    save_session(session, path)
    restored, _ = load_session(ENGINE, path)
    assert restored.compressions == session.compressions
    np.testing.assert_array_equal(restored.append(tokens[before:]), session.append(tokens[before:]))


def test_unread_tokens_of_a_cancelled_reading_are_saved(tmp_path):
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
    write_checksum(path)


def write_checksum(path):
    """As the format says it: of the whole file, its own digits zeros."""
    content = bytearray(path.read_bytes())
    found = re.search(rb'"edgeinfinite\.sha256":"([0-9a-f]{64})"', content)
    content[found.start(1) : found.end(1)] = b"0" * 64
    content[found.start(1) : found.end(1)] = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(content)


def refusal(path):
    with pytest.raises(EdgeInfiniteError) as caught:
        load_session(ENGINE, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_checksum_covers_the_file_with_zeros_in_its_place(saved):
    content = saved.read_bytes()
    write_checksum(saved)
    assert saved.read_bytes() == content
    load_session(ENGINE, saved)


def test_every_flipped_bit_is_found(saved):
    content = saved.read_bytes()
    dice = random.Random(24)
    places = [dice.randrange(8 * len(content)) for _ in range(300)]
    places += range(0, 8 * 1200, 29)  # the header, which is a small part of the file
    for place in places:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(flipped)
        refusal(saved)


def test_a_file_with_extra_bytes_is_refused(saved):
    saved.write_bytes(saved.read_bytes() + b"\0")
    refusal(saved)


def test_a_file_without_a_checksum_is_refused(saved):
    with safe_open(saved, framework="numpy") as file:
        metadata = file.metadata()
    del metadata["edgeinfinite.sha256"]
    save_file(load_file(saved), saved, metadata=metadata)
    assert "edgeinfinite.sha256" in refusal(saved)


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


def endless_counter(tensors, header):
    header["tokens_read"] = 10**400


def negative_counters(tensors, header):
    header["compressions"] = -1
    header["tokens_read"] -= 8 * (header["compressions"] + 1)


def one_layer_is_shorter(tensors, header):
    tensors["length"][1] -= 1
    for cache in ("k_cache_1", "v_cache_1"):
        tensors[cache] = tensors[cache][:, :, :-1].copy()


def negative_length(tensors, header):
    tensors["length"][:] = -3


def half_a_memory(tensors, header):
    tensors["has_memory"][:] = 0.5


def no_memory_after_a_compression(tensors, header):
    tensors["has_memory"][:] = 0.0


def token_outside_the_vocabulary(tensors, header):
    tensors["residual"][0] = ENGINE.vocabulary


def negative_token(tensors, header):
    tensors["unread"] = np.array([-1], np.int64)


def tokens_of_another_type(tensors, header):
    tensors["residual"] = tensors["residual"].astype(np.float64)


def tokens_in_a_table(tensors, header):
    tensors["unread"] = np.zeros((2, 2), np.int64)


def cache_of_another_type(tensors, header):
    tensors["k_cache_0"] = tensors["k_cache_0"].astype(np.float16)


def foreign_tensor(tensors, header):
    tensors["weights"] = np.zeros(3, np.float32)


def geometry_of_text(tensors, header):
    header["geometry"]["segment_length"] = "8"


def deep_geometry(tensors, header):
    deep = []
    for _ in range(300):
        deep = [deep]
    header["geometry"]["recall_slots"] = deep


@pytest.mark.parametrize(
    "change",
    [
        nan_in_memory,
        lost_tensor,
        wrong_shape,
        wrong_length,
        wrong_counter,
        endless_counter,
        negative_counters,
        one_layer_is_shorter,
        negative_length,
        half_a_memory,
        no_memory_after_a_compression,
        token_outside_the_vocabulary,
        negative_token,
        tokens_of_another_type,
        tokens_in_a_table,
        cache_of_another_type,
        foreign_tensor,
        geometry_of_text,
        deep_geometry,
    ],
)
def test_a_damaged_state_is_refused(saved, change):
    rewrite(saved, change)
    assert "not a whole session file" in refusal(saved)


def _with_metadata(path, header):
    tensors = load_file(path)
    save_file(tensors, path, metadata={"edgeinfinite": header, "edgeinfinite.sha256": "0" * 64})
    write_checksum(path)


@pytest.mark.parametrize(
    "header",
    ["[" * 100_000, "{", "null", "3", '{"format": 2}', '{"format": 1e400}', '{"format": "2"}'],
)
def test_a_pathological_header_is_one_line(saved, header):
    _with_metadata(saved, header)
    assert "not a whole session file" in refusal(saved)


def test_an_unknown_dtype_is_one_line(saved):
    with safe_open(saved, framework="numpy") as file:
        metadata = file.metadata()
    save_torch_file({"k_cache_0": torch.zeros(2, dtype=torch.bfloat16)}, saved, metadata)
    write_checksum(saved)
    assert "not a whole session file" in refusal(saved)


@pytest.mark.parametrize(
    ("version", "says"), [(1, "start a new session"), (99, "update edgeinfinite")]
)
def test_another_format_is_refused(saved, version, says):
    rewrite(saved, lambda tensors, header: header.update(format=version))
    with pytest.raises(EdgeInfiniteError, match=says):
        load_session(ENGINE, saved)


def of_another_artifact(header, **changes):
    header.update(belongs_to="0" * 64, **changes)


def test_another_artifact_of_the_same_model_takes_a_state_over(saved):
    own, _ = load_session(ENGINE, saved)
    rewrite(saved, lambda tensors, header: of_another_artifact(header))
    other, _ = load_session(ENGINE, saved)
    assert (own.taken_over, other.taken_over) == (False, True)
    np.testing.assert_array_equal(own.append([5]), other.append([5]))


def test_a_file_that_does_not_name_its_model_is_for_its_own_artifact_only(saved):
    def older(tensors, header):
        del header["model"], header["cache_dims"]

    rewrite(saved, older)
    assert load_session(ENGINE, saved)[0].tokens_read == 33
    rewrite(saved, lambda tensors, header: of_another_artifact(header))
    assert "another model" in refusal(saved)


@pytest.mark.parametrize(
    "dims", [{}, {"k_cache": "B K C D"}, {"k_cache": "B K C C", "v_cache": "B K C D"}, "B K C D"]
)
def test_a_state_in_an_unknown_layout_is_refused(saved, dims):
    rewrite(saved, lambda tensors, header: of_another_artifact(header, cache_dims=dims))
    assert "not a whole session file" in refusal(saved)


def test_another_artifacts_state_is_checked_like_ones_own(saved):
    def of_integers(tensors, header):
        of_another_artifact(header)
        tensors["k_cache_0"] = tensors["k_cache_0"].astype(np.int32)

    rewrite(saved, of_integers)
    assert "k_cache_0 is int32" in refusal(saved)


@pytest.mark.parametrize(
    "other", [attached(Geometry(8, 4, 2)), attached(Geometry(8, 4, 3), open_gates=False)]
)
def test_another_geometry_or_gate_is_refused(saved, other):
    with pytest.raises(EdgeInfiniteError, match="another model, gate, scorer or geometry"):
        load_session(TorchEngine(other), saved)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(EdgeInfiniteError, match="doesn't exist"):
        load_session(ENGINE, tmp_path / "none")


def test_file_and_folder_are_on_the_disk_before_saving_ends(saved, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").resolve()), real(fd))
    )
    session, _ = load_session(ENGINE, saved)
    save_session(session, saved)
    file, folder = synced
    assert file.parent.parent == folder == saved.parent.resolve()


def test_only_the_owner_can_read_a_session(saved):
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "s")
    with pytest.raises(EdgeInfiniteError, match="not a regular file"):
        save_session(Session(ENGINE), tmp_path / "s")


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.session_file import SessionFile, SessionHeader, write_session_file
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
header = SessionHeader(2, "x", Geometry(8, 4, 3), 0, 0)
write_session_file(Path(sys.argv[1]), SessionFile(header, {"a": np.zeros(10_000)}, {}))
"""


def test_a_full_disk_is_one_line_and_leaves_the_old_file(saved):
    content = saved.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(saved)], capture_output=True, text=True, check=False
    )
    assert "EdgeInfiniteError" in done.stderr.splitlines()[-1]
    assert "can't be written" in done.stderr.splitlines()[-1]
    assert saved.read_bytes() == content
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
