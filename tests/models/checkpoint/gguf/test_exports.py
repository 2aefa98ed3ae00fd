"""Hybrids from GGUF with rounded weights, which export compares with the model of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("gguf")

import tiny_gguf

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions

OTHERS = (
    *("lfm2", "lfm2moe", "qwen35", "granitehybrid", "granitemoe", "gemma3n", "gemma4"),
    "gpt-oss",
)


@pytest.mark.parametrize(
    "family",
    ["falcon-h1", *(pytest.param(one, marks=pytest.mark.llama_cpp) for one in OTHERS)],
)
def test_a_hybrids_file_exports_in_four_bits(family: str, tmp_path: Path) -> None:
    """Falcon-H1's was refused: its files hold multipliers of 1, a folder has others."""
    path = tiny_gguf.write(tmp_path / "tiny.gguf", family, kind="F32")
    options = ExportOptions(str(path), tmp_path / "artifact", quantize="int4", gate="none")
    export_artifact(options, progress=lambda *_: None)
    assert load_manifest(options.output).quantization.quantized
