"""Every architecture of the list through the ONNX back end, float32, under both policies."""

from __future__ import annotations

from pathlib import Path

import pytest
from architectures import ARCHITECTURES
from exported import assert_both_policies_compute_what_pytorch_does
from transformers import PreTrainedModel

from edgeinfinite.export.backend import ExportedGraphs, WeightRequest
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine

OTHER_NORMS = {"Cohere", "nanochat"}
"""Norms that subtract the mean, or have no weight: they stay as they are."""


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_computes_the_same_on_onnxruntime(name: str, tmp_path: Path) -> None:
    def export(model: PreTrainedModel) -> ExportedGraphs:
        recipe = recipe_named("none")
        exported = BACKEND.export_graphs(
            WeightRequest(model, recipe), tmp_path, "cpu", lambda *_: None
        )
        passes = exported.details["passes"]
        assert passes["rotary"] and bool(passes["rms_norm"]) == (name not in OTHER_NORMS)
        return exported

    assert_both_policies_compute_what_pytorch_does(
        name, "onnx", export, lambda manifest: OnnxEngine(tmp_path, manifest, threads=1)
    )
