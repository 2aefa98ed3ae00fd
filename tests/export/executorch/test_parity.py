"""The parity check of a program that rounds activations: a wrong program fails it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from tiny_artifact import tiny_artifact
from transformers import PreTrainedModel

from edgeinfinite.artifact.manifest import GATE_FILE, load_manifest
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.mixing.rotation import rotate_residual
from edgeinfinite.export.parity.calls import check_parity
from edgeinfinite.export.parity.sensitivity import nudged
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine

Change = Callable[[PreTrainedModel], None]


def _scaled(path: str, factor: float) -> Change:
    """A weight that is wrong by some percent."""

    def change(model: PreTrainedModel) -> None:
        model.get_submodule(path).weight.data.mul_(factor)

    return change


def _shifted_positions(model: PreTrainedModel) -> None:
    rotary = model.get_decoder().rotary_emb
    forward = rotary.forward
    rotary.forward = lambda x, position_ids: forward(x, 2 * position_ids)


def _without_rounding(path: str) -> Change:
    def change(model: PreTrainedModel) -> None:
        layer = model.get_submodule(path)
        exact = torch.nn.Linear(layer.in_features, layer.out_features, bias=False)
        exact.weight = layer.weight
        model.set_submodule(path, exact)

    return change


TEXT = "A text that is long enough for three compressions. " * 8

WRONG = {
    "attention's projection 5 % too large": _scaled("model.layers.0.self_attn.o_proj", 1.05),
    "keys 5 % too large": _scaled("model.layers.1.self_attn.k_proj", 1.05),
    "last layer's MLP 10 % too large": _scaled("model.layers.1.mlp.down_proj", 1.1),
    "head 10 % too large": _scaled("lm_head", 1.1),
    "a norm 5 % too large": _scaled("model.layers.1.input_layernorm", 1.05),
    "positions twice as far apart": _shifted_positions,
    "a layer that doesn't round its input": _without_rounding("model.layers.0.self_attn.v_proj"),
}


@pytest.fixture(scope="module", params=["int8", "int4"])
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("parity") / "artifact"
    return tiny_artifact(place, "--backend", "executorch", "--quantize", request.param)


def reference_of(artifact: Path) -> PreTrainedModel:
    manifest = load_manifest(artifact)
    backbone = load_backbone(str(artifact.with_name("artifact-checkpoint")))
    config = EdgeInfiniteConfig(manifest.geometry, str(artifact / GATE_FILE))
    recipe = recipe_named(manifest.quantization.recipe)
    model = attach(backbone.model, config)
    if manifest.details.get("turned"):
        rotate_residual(model)
    return BACKEND.quantized_reference(WeightRequest(model, recipe))


def test_a_right_program_passes(artifact: Path) -> None:
    checks = check_parity(artifact, TorchEngine(reference_of(artifact)), text=TEXT)
    assert [check for check in checks if not check.passed] == []


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_program_fails(artifact: Path, wrong: str) -> None:
    model = reference_of(artifact)
    WRONG[wrong](model)
    checks = check_parity(artifact, TorchEngine(model), text=TEXT)
    assert [check for check in checks if not check.passed]


def test_a_reference_that_rounds_nothing_has_fixed_limits(artifact: Path) -> None:
    backbone = load_backbone(str(artifact.with_name("artifact-checkpoint")))
    manifest = load_manifest(artifact)
    model = attach(backbone.model, EdgeInfiniteConfig(manifest.geometry))
    assert nudged(TorchEngine(model)) is None
    assert nudged(TorchEngine(reference_of(artifact))) is not None
