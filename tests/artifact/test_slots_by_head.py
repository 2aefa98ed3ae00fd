"""Artifacts and sessions whose layers have several caches are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from manifest_edit import edit_manifest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.session_file import HEADER_KEY, read_session_header
from edgeinfinite.cli import main
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import save_session
from edgeinfinite.runtime_py.session.session import Session

CACHES = {"recall_slots": [0, 32, 32], "caches": [[0, 0], [0, 1], [1, 0, 1]]}
"""As the geometry of a manifest and of a session file had it."""


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    pytest.importorskip("onnxruntime")
    return tiny_artifact(tmp_path / "artifact", "--gate", "none")


def test_an_artifact_with_slots_by_head_is_refused(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_manifest(artifact, lambda manifest: manifest["geometry"].update(CACHES))
    assert main(["generate", str(artifact), "--prompt", "a"]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "manifest.json has recall slots by head (geometry.caches)" in told
    assert told.endswith("export it again")


def test_a_session_with_slots_by_head_is_refused(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "by-head.session"
    save_session(Session(load_engine(artifact)), path)
    header, _ = read_session_header(path)
    assert header.geometry.policy == "reencode"
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    fields = json.loads(metadata[HEADER_KEY])
    fields["geometry"] |= CACHES
    save_file(load_file(path), path, metadata | {HEADER_KEY: json.dumps(fields)})
    assert main(["generate", str(artifact), "--prompt", "a", "--from", str(path)]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "by-head.session has recall slots by head (geometry.caches)" in told
    assert told.endswith("export its artifact again and read the text anew")


@pytest.mark.parametrize("slots", [[[512, 0, 0], [0, 0, 1]], [256, [0, 1]]])
def test_a_list_of_caches_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slots: list[object]
) -> None:
    path = tmp_path / "slots.json"
    path.write_text(json.dumps(slots))
    with pytest.raises(SystemExit):
        main(["export", "--model", "m", "--output", "o", "--recall-slots", str(path)])
    assert "slots.json is a list of lists, slots by KV head" in capsys.readouterr().err
