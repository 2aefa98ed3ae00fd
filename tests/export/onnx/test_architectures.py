"""Other RoPE decoders than Llama through the ONNX back end, float32, across compressions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import SCHEMA_VERSION, BackboneInfo, GateInfo, Manifest
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session import Session
from tiny import assert_close, random_tokens

GEOMETRY = Geometry(segment_length=16, sink_length=4, window_length=4)
SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SLIDING: dict[str, Any] = {"head_dim": 16, "num_hidden_layers": 2, "sliding_window": 8}
FAMILIES: dict[str, dict[str, Any]] = {
    "Qwen2": {},
    "Qwen3": {"head_dim": 16},
    "Mistral": {"sliding_window": None},
    "Phi3": {},
    "Granite": {},
    "Olmo2": {},
    "Gemma2": SLIDING,
    "Gemma3": SLIDING,
    "SmolLM3": {},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_computes_the_same_on_onnxruntime(family, tmp_path: Path):
    torch.manual_seed(0)
    config_name = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    config = getattr(transformers, config_name)(**(SIZES | FAMILIES[family]))
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    attach(model, EdgeInfiniteConfig(GEOMETRY, gate_rank=8))
    exported = BACKEND.export_graphs(model, recipe_named("none"), tmp_path, "cpu", lambda *_: None)
    assert exported.details["passes"]["rotary"] and exported.details["passes"]["rms_norm"]
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        backend="onnx",
        target="cpu",
        backbone=BackboneInfo("tiny", family, 1, 4, 2, 16, 97, 256, 1, "0"),
        geometry=GEOMETRY,
        gate=GateInfo("untrained", 8, 1, "0"),
        scorer=None,
        state=exported.state,
        graphs=exported.graphs,
        quantization=exported.quantization,
        parity={},
        files={},
        tools={},
        details={},
    )
    subject = Session(OnnxEngine(tmp_path, manifest, threads=1), chunk_length=5)
    reference = Session(TorchEngine(model))
    tokens = random_tokens(60)
    for start, end in ((0, 9), (9, 10), (10, 50), (50, 51), (51, 60)):
        wanted = reference.append(tokens[start:end])
        assert_close(subject.append(tokens[start:end]), wanted, 1e-4)
    assert subject.compressions >= 2
