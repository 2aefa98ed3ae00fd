"""A GGUF file whose pre-tokenizer isn't known is refused, or read by another's name to the end."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("gguf")

import tiny_gguf

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main

GEOMETRY = ("--segment-length", "32", "--sink-length", "4", "--window-length", "8")


def test_an_unknown_pre_tokenizer_is_refused_and_can_be_named_for_the_whole_way(tmp_path, capsys):
    file = tiny_gguf.write(tmp_path / "new.gguf", keys={"tokenizer.ggml.pre": "of-next-year"})
    artifact = tmp_path / "artifact"
    export = ["export", "--model", str(file), "--output", str(artifact), *GEOMETRY]
    assert main(export) == 2
    refused = capsys.readouterr().err
    assert "of-next-year" in refused and "--pre-tokenizer" in refused
    assert main([*export, "--pre-tokenizer", "no-such"]) == 2
    assert not artifact.exists()
    assert main([*export, "--pre-tokenizer", "qwen2"]) == 0
    assert load_manifest(artifact).details["pre_tokenizer"] == "qwen2"
    assert main(["verify", str(artifact), "--model", str(file)]) == 0
    assert main(["generate", str(artifact), "--prompt", "a", "--raw", "--max-new-tokens", "2"]) == 0


def test_a_folder_has_a_tokenizer_of_its_own(checkpoint: Path, tmp_path, capsys):
    export = ["export", "--model", str(checkpoint), "--output", str(tmp_path / "a")]
    assert main([*export, "--pre-tokenizer", "qwen2"]) == 2
    assert "--pre-tokenizer is for .gguf files" in capsys.readouterr().err
