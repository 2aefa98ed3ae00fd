"""Models with experts through the ONNX back end: float32 and 4 bits, and only chosen ones compute.

The oracle is transformers' own code over the same weights, with its own way to run experts.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from exported import assert_any_split_is_what_pytorch_computes, manifest_of
from tiny_artifact import GEOMETRY, VOCABULARY, tiny_artifact, tiny_checkpoint
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import Manifest, read_manifest
from edgeinfinite.artifact.tensors import PREFILL
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.exportable import check_exportable
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.onnx.expert_parity import check_experts
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.experts import expert_modules, projections
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens, tiny_family

EXPERTS, CHOSEN = 8, 2
CARRY = Geometry(segment_length=8, sink_length=4, window_length=12, policy="carry")
_COUNTS = {"num_experts": EXPERTS, "num_experts_per_tok": CHOSEN}
_LOCAL = {"num_local_experts": EXPERTS, "num_experts_per_tok": CHOSEN, "intermediate_size": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "GptOss": {  # transposed weights, biases, clamped gates, learned sinks, windows
        **_LOCAL,
        "sliding_window": 7,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    },
    "GraniteMoe": {**_LOCAL, "attention_multiplier": 0.1},  # 1.0, its default, makes rounding grow
    "Lfm2Moe": {  # short convolutions, a dense layer, chosen by sigmoids
        **_COUNTS,
        "num_hidden_layers": 3,
        "num_dense_layers": 1,
        "moe_intermediate_size": 32,
        "layer_types": ["conv", "full_attention", "full_attention"],
    },
    "Mixtral": _LOCAL,
    "Olmoe": {**_COUNTS, "intermediate_size": 32},
    "Qwen2Moe": {  # a shared expert with a gate of its own
        **_COUNTS,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
    },
    "Qwen3Moe": {**_COUNTS, "moe_intermediate_size": 32},
}


ROUNDED = [*((name, "int4") for name in FAMILIES), ("GptOss", "int8"), ("Lfm2Moe", "int8")]
"""Families differ in how a projection lies, recipes in its codes: what lies otherwise has both."""


def family(name: str) -> PreTrainedModel:
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "head_dim": 16, "vocab_size": VOCABULARY}
    model = tiny_family(name, **sizes | {"max_position_embeddings": 512} | FAMILIES[name])
    for path, tensor in (*model.named_parameters(), *model.named_buffers()):
        if path.endswith(("_bias", "expert_bias")):
            tensor.data += 0.3 * torch.randn_like(tensor)
    return model.requires_grad_(False)


def float_graphs(model: PreTrainedModel, folder: Path) -> Manifest:
    attach(model, EdgeInfiniteConfig(CARRY, NO_GATE))
    request = WeightRequest(model, recipe_named("none"))
    exported = BACKEND.export_graphs(request, folder, "cpu", lambda *_: None)
    return manifest_of(model, "onnx", exported)


@pytest.mark.parametrize("name", FAMILIES)
def test_experts_compute_in_float32_what_transformers_computes(name: str, tmp_path: Path) -> None:
    model = family(name)
    assert all(check.passed for check in check_exportable(model, "carry"))
    engine = OnnxEngine(tmp_path, float_graphs(model, tmp_path), threads=1)
    assert_any_split_is_what_pytorch_computes(engine, model)


@pytest.mark.parametrize(("name", "recipe"), ROUNDED)
def test_experts_have_few_bits_and_compute_what_transformers_does_from_them(
    name: str, recipe: str, tmp_path: Path
) -> None:
    """The export compares the artifact with transformers over the same weights, within 1e-4."""
    model = family(name)
    tiny_artifact(tmp_path / "artifact", "--policy", "carry", "--quantize", recipe, model=model)
    manifest = read_manifest(tmp_path / "artifact")
    found = manifest.quantization.quantized
    held = list(expert_modules(model))
    assert held
    for path, part in held:
        for projection in projections(part):
            assert found[f"{path}.{projection}"].startswith(recipe)
    chooses = [name for name in manifest.quantization.unquantized if "experts" not in name]
    assert any("router" in name or name.endswith("gate.weight") for name in chooses)
    assert manifest.details["passes"]["experts"] == 2 * EXPERTS * len(held)
    assert manifest.parity["parity:between_products"] < 1e-4
    assert manifest.parity["parity:experts"] < 1e-5
    graph = onnx.load(tmp_path / "artifact" / "decode_step.onnx", load_external_data=False).graph
    assert {node.domain for node in graph.node} <= {"", "com.microsoft"}


def test_nothing_is_computed_of_experts_that_no_token_chose(tmp_path: Path) -> None:
    """Each expert in turn gives NaN. A token's logits are NaN for as many as it has chosen."""
    model = family("Qwen3Moe")
    manifest = float_graphs(model, tmp_path)
    path = tmp_path / manifest.graphs[PREFILL].file
    whole = onnx.load(path, load_external_data=False)
    first = [
        node.output[0]
        for node in whole.graph.node
        if node.op_type == "Gemm" and re.search(r"layers\.0\..*gate_up.*weight\.\d", node.input[1])
    ]
    assert len(first) == EXPERTS
    tokens, spoilt = random_tokens(6), 0
    for name in first:
        changed = onnx.ModelProto()
        changed.CopyFrom(whole)
        (node,) = [node for node in changed.graph.node if node.output[0] == name]
        node.attribute.append(onnx.helper.make_attribute("alpha", float("nan")))
        onnx.save(changed, path)
        other = OnnxEngine(tmp_path, manifest, threads=1)
        for token in tokens:
            state = other.new_state()
            logits = other.prefill_segment(np.array([[token]]), state)
            spoilt += bool(np.isnan(logits).any())
    assert spoilt == CHOSEN * len(tokens)


@pytest.fixture(scope="module")
def olmoe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In 4 bits; to be copied."""
    folder = tmp_path_factory.mktemp("olmoe") / "artifact"
    return tiny_artifact(folder, "--policy", "carry", "--quantize", "int4", model=family("Olmoe"))


@pytest.mark.parametrize("fault", ["scales", "rows"])
def test_a_fault_in_one_expert_is_found(fault: str, olmoe: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(olmoe, tmp_path / "artifact"))
    path = folder / read_manifest(folder).graphs[PREFILL].file
    graph = onnx.load(path, load_external_data=False)
    last = [n for n in graph.graph.node if n.op_type == "MatMulNBits" and ".codes.7" in n.input[1]]
    assert len(last) == 4
    if fault == "scales":
        before = next(n for n in graph.graph.node if ".codes.6" in "".join(n.input))
        last[0].input[2] = before.input[2]
    else:
        others = next(n for n in graph.graph.node if last[1].input[0] in n.output)
        last[1].input[0] = others.output[0]
    onnx.save(graph, path)
    model = attach(family("Olmoe"), EdgeInfiniteConfig(CARRY, NO_GATE))
    reference = BACKEND.quantized_reference(WeightRequest(model, recipe_named("int4")))
    (check,) = check_experts(folder, read_manifest(folder), reference)
    assert not check.passed and check.value > 0.1


def test_a_long_text_reads_on_in_4_bits(tmp_path: Path) -> None:
    folder = tiny_artifact(
        tmp_path / "artifact",
        *("--policy", "carry", "--quantize", "int4", "--cache-type", "int8"),
        *("--recall-slots", "32", "--scorer", "untrained"),
        model=family("GptOss"),
    )
    session = Session(OnnxEngine(folder, read_manifest(folder), threads=1))
    logits = session.append(random_tokens(150))
    assert session.compressions and np.isfinite(logits).all()


def test_what_does_not_run_experts_refuses_them_by_name(tmp_path: Path) -> None:
    facts = architecture_of(family("Mixtral"))
    executorch = pytest.importorskip("edgeinfinite.export.executorch")
    with pytest.raises(EdgeInfiniteError, match=r"executorch doesn't run experts.*MixtralExperts"):
        executorch.BACKEND.check_architecture(facts, CARRY)


def test_bits_of_experts_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "artifact"
    checkpoint = tiny_checkpoint(folder, model=family("Mixtral"))
    asked = ("--model", str(checkpoint), "--output", str(tmp_path / "other"), *GEOMETRY)
    assert main(["export", *asked, "--quantize", "int4", "--max-mb", "1"]) == 2
    assert "bits aren't mixed" in capsys.readouterr().err.splitlines()[-1]


def test_experts_that_no_interface_runs_are_refused() -> None:
    model = family("Mixtral")
    for _, part in expert_modules(model):
        del part.has_gate
    with pytest.raises(EdgeInfiniteError, match=r"MixtralExperts.*don't go through transformers'"):
        check_exportable(model, "carry")
