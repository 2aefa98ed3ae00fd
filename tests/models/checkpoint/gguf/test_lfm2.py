"""LFM2's files in every precision, against transformers' own reader and llama.cpp."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")

import tiny_gguf
from gguf_cases import CONTEXT, LIMIT
from gguf_peer import difference, peer_logits
from transformers import AutoModelForCausalLM

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.checkpoint.loading import load_backbone

ROUNDED = 0.15
"""As in `verify --against`: llama.cpp rounds activations to 8 bits where weights are rounded."""

MATRICES = {f"model.layers.{i}.feed_forward.{name}.weight" for i in range(4) for name in
            ("w1", "w2", "w3")}  # fmt: skip
PROJECTIONS = {f"model.layers.{i}.conv.{name}_proj.weight" for i in (0, 2) for name in
               ("in", "out")}  # fmt: skip


def logits(model: torch.nn.Module, ids: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    return found


def ids_of(count: int = 100) -> np.ndarray:
    return np.random.default_rng(3).integers(3, tiny_gguf.VOCABULARY, count)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_it_is_read_as_transformers_own_reader_does(kind: str, tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "lfm2", kind=kind)
    ours = load_backbone(str(path))
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, dtype=torch.float32
    ).eval()
    np.testing.assert_allclose(
        logits(ours.model, ids_of()), logits(theirs, ids_of()), rtol=0, atol=1e-5
    )
    facts = architecture_of(ours.model)
    assert (len(facts.layers), len(facts.recurrent)) == (2, 2)
    if kind.startswith("Q"):
        assert set(ours.integers) >= MATRICES | PROJECTIONS


@pytest.mark.llama_cpp
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "limit"), [("F16", LIMIT), ("BF16", LIMIT), ("Q8_0", ROUNDED), ("Q4_0", ROUNDED)]
)
def test_other_precisions_are_near_llama_cpp(kind: str, limit: float, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "lfm2", kind=kind)
    places = [0, 64, 99]
    wanted = peer_logits(path, ids_of(), places, CONTEXT)
    assert wanted is not None, "llama.cpp refuses the file"
    found = logits(load_backbone(str(path)).model, ids_of())[places]
    assert difference(found, wanted).max() < limit


def test_an_artifact_takes_the_files_integers_over(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "lfm2", kind="Q4_0")
    command = ["export", "--model", str(path), "--output", str(tmp_path / "artifact")]
    geometry = ["--segment-length", "16", "--sink-length", "4", "--window-length", "24"]
    assert main([*command, *geometry, "--quantize", "int4"]) == 0
    manifest = load_manifest(tmp_path / "artifact")
    assert set(manifest.quantization.quantized) >= MATRICES | PROJECTIONS
    assert [spec.name for spec in manifest.state if spec.role == "conv_state"] == [
        "conv_state_0",
        "conv_state_1",
    ]
