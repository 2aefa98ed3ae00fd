"""Commands print only their own output."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from tiny_artifact import GEOMETRY, tiny_checkpoint

BACKENDS = [
    "onnx",
    pytest.param(
        "executorch",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("executorch") is None, reason="executorch isn't installed"
        ),
    ),
]


def stderr_of(*command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "edgeinfinite.cli", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("backend", BACKENDS)
def test_export_prints_notes_and_nothing_else(backend, tmp_path):
    checkpoint = tiny_checkpoint(tmp_path / "tiny", layers=1)
    lines = stderr_of(
        *("export", "--model", str(checkpoint), "--output", str(tmp_path / "artifact")),
        *("--backend", backend, "--quantize", "int4", "--policy", "carry", *GEOMETRY),
        *("--recall-slots", "32", "--scorer", "untrained"),
    )
    assert not [line for line in lines if not line.startswith(("note: ", "warning: "))]


def test_train_scorer_prints_its_progress_and_nothing_else(tmp_path):
    checkpoint, texts = tiny_checkpoint(tmp_path / "tiny"), tmp_path / "texts"
    texts.mkdir()
    for number in range(2):
        (texts / f"{number}.txt").write_text("A dog went home.\n" * 300)
    lines = stderr_of(
        *("train-scorer", "--model", str(checkpoint), "--data", str(texts)),
        *("--output", str(tmp_path / "scorer.safetensors"), "--tokens", "400", "--passes", "2"),
        *("--repeated-passes", "1"),
        *("--held-out-passes", "1", "--gap", "40", "--facts", "1", "--steps", "1"),
    )
    assert lines
    assert not [line for line in lines if line and " % " not in line]
