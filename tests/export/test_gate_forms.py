"""Gates of every form in real artifacts: the same memory and answers as in PyTorch."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from manifest_edit import edit_manifest
from tiny_artifact import tiny_artifact, tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import GATE_FILE, read_manifest
from edgeinfinite.cli import main
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import open_gate

LENGTHS = {"segment_length": 32, "sink_length": 4, "window_length": 8}
FORMS = [("learned", "query"), ("softmax", "constant"), ("learned", "place")]
BACKENDS = [
    "onnx",
    pytest.param(
        "executorch",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("executorch") is None, reason="executorch isn't installed"
        ),
    ),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """Of one layer: that layers have gates of their own is shown by the carry tests."""
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny", layers=1)


def exported(folder: Path, checkpoint: Path, geometry: Geometry, backend: str, form) -> Path:
    config = EdgeInfiniteConfig(geometry, feature_map=form[0], opening=form[1])
    layers = attention_layers(attach(load_backbone(str(checkpoint)).model, config))
    torch.manual_seed(1)
    for layer in layers:
        open_gate(layer.memory_gate)
    save_gate(folder / "gate.safetensors", layers, {})
    command = ["export", "--model", str(checkpoint), "--backend", backend]
    command += ["--gate", str(folder / "gate.safetensors"), "--output", str(folder / "artifact")]
    for name, value in LENGTHS.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    assert main([*command, "--policy", geometry.policy]) == 0
    return folder / "artifact"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("form", "policy"), [*((f, "reencode") for f in FORMS), (FORMS[0], "carry")]
)
def test_an_artifact_computes_what_pytorch_does(
    checkpoint, tmp_path, backend, form, policy, caplog
):
    geometry = Geometry(**LENGTHS, policy=policy)
    artifact = exported(tmp_path, checkpoint, geometry, backend, form)
    assert "lowering the long way" not in caplog.text  # minutes more on a real model
    gate = read_manifest(artifact).gate
    assert gate is not None and (gate.feature_map, gate.opening) == form
    config = EdgeInfiniteConfig(geometry, gate=str(artifact / GATE_FILE))
    reference = TorchEngine(attach(load_backbone(str(checkpoint)).model, config))
    tokens = np.random.default_rng(0).integers(2, 250, 150).tolist()
    ours, theirs = Session(load_engine(artifact)), Session(reference)
    for part in (tokens[:120], *([token] for token in tokens[120:])):
        found, wanted = ours.append(part), theirs.append(part)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    assert ours.compressions == theirs.compressions >= 3
    for name in ("memory", "memory_norm"):
        arrays = (session.state.arrays[name] for session in (ours, theirs))
        np.testing.assert_allclose(*arrays, rtol=1e-3, atol=1e-3)
    theirs.state.arrays["memory"] *= -1  # it counts
    assert np.abs(theirs.append(tokens[:1]) - ours.append(tokens[:1])).max() > 0.1


def test_an_older_manifest_without_a_form_means_the_papers_form(tmp_path):
    artifact = tiny_artifact(tmp_path / "artifact")
    for name in ("feature_map", "opening"):
        edit_manifest(artifact, lambda manifest, name=name: manifest["gate"].pop(name))
    gate = read_manifest(artifact).gate
    assert gate is not None and (gate.feature_map, gate.opening) == ("elu", "constant")
