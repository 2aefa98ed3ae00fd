"""Converted peers: made once, and said when they are written."""

from __future__ import annotations

from pathlib import Path

from tiny_artifact import tiny_checkpoint

from edgeinfinite.export.peer_models import prepare_peer_model


def test_a_converted_checkpoint_is_told_of_when_it_is_written_and_only_then(
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(tmp_path / "tiny")
    notes: list[str] = []
    folder = prepare_peer_model("folder", "", str(checkpoint), tmp_path, notes.append)
    assert (folder / "config.json").is_file()
    (told,) = notes
    assert str(folder) in told and "--peer-cache" in told
    assert prepare_peer_model("folder", "", str(checkpoint), tmp_path, notes.append) == folder
    assert len(notes) == 1
