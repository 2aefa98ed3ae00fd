"""Hybrid models through the ExecuTorch back end: sliding layers hold their window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, tiny_hybrid

WINDOW = 17
LENGTHS = ("--segment-length", "8", "--window-length", "12", "--sink-length", "4")
VARIANTS = {
    "Qwen2": LENGTHS,  # the sliding layer has as many slots as the other, and another length
    "Gemma3": LENGTHS,  # its layers of either kind have their own rotary embedding
    "Mistral": ("--segment-length", "8"),  # every layer slides
}


@pytest.fixture(scope="module", params=VARIANTS)
def artifact(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family = request.param
    folder = tmp_path_factory.mktemp(family) / "artifact"
    model = tiny_hybrid(family, WINDOW, layers=2, vocabulary=VOCABULARY)
    options = ("--backend", "executorch", "--policy", "carry", *VARIANTS[family])
    return tiny_artifact(folder, *options, model=model)


def test_the_artifact_computes_what_pytorch_computes_at_every_token(artifact):
    manifest = read_manifest(artifact)
    checkpoint = str(artifact.with_name("artifact-checkpoint"))
    config = EdgeInfiniteConfig(manifest.geometry, NO_GATE)
    model = attach(load_backbone(checkpoint).model, config)
    subject, reference = Session(load_engine(artifact)), Session(TorchEngine(model))
    tokens = np.random.default_rng(0).integers(2, 200, 100).tolist()
    for token in tokens:
        assert_close(subject.append([token]), reference.append([token]), 1e-4)
        np.testing.assert_array_equal(subject.state.length, reference.state.length)
    whole = Session(subject.engine, chunk_length=5).append(tokens)
    assert_close(whole, Session(reference.engine).append(tokens), 1e-4)
    checks = verify_artifact(artifact, model=checkpoint)
    assert [check for check in checks if not check.passed] == []
