"""`verify --against FILE.gguf`: llama.cpp judges how the file was read."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gguf")

import tiny_gguf
from gguf_cases import FREQS

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.against_gguf import check_against_gguf
from edgeinfinite.export.verify import verify_artifact

SIZES = ["--segment-length", "16", "--sink-length", "4", "--window-length", "12"]


def exported(folder: Path) -> tuple[Path, Path]:
    """An artifact and its GGUF file, whose RoPE is scaled."""
    file = tiny_gguf.write(folder / "tiny.gguf", more=FREQS)
    command = ["export", "--model", str(file), "--output", str(folder / "artifact")]
    assert main([*command, "--recall-slots", "0", *SIZES]) == 0
    return folder / "artifact", file


def test_without_llama_cpp_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(EdgeInfiniteError, match=r"pip install 'llama-cpp-python"):
        check_against_gguf(tmp_path, None, tmp_path / "model.gguf")


@pytest.mark.llama_cpp
@pytest.mark.slow
def test_an_artifact_agrees_with_llama_cpp_on_its_own_file_only(tmp_path):
    artifact, file = exported(tmp_path)
    checks = {check.check: check for check in verify_artifact(artifact, against=file)}
    assert all(check.passed for check in checks.values())
    assert checks["logits:llama.cpp"].value < 1e-4
    assert checks["tokens:llama.cpp"].value == 0
    tokenizer = artifact / "tokenizer.json"
    text = tokenizer.read_text(encoding="utf-8")
    tokenizer.write_text(text.replace('"merges":["a b"]', '"merges":[]'), encoding="utf-8")
    assert tokenizer.read_text(encoding="utf-8") != text
    found = check_against_gguf(artifact, read_manifest(artifact), file)
    assert [check.check for check in found if not check.passed] == ["tokens:llama.cpp"]
    other = tiny_gguf.write(tmp_path / "other.gguf", more={"blk.0.attn_q.bias": np.ones(64, "f4")})
    assert not next(iter(check_against_gguf(artifact, read_manifest(artifact), other))).passed
