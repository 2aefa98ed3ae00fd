"""What the ONNX back end refuses before it traces anything."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.architecture import LayerFacts, architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from tiny import tiny_llama

GEOMETRY = Geometry(segment_length=16, sink_length=4, window_length=4)


def test_heads_that_onnxruntime_cannot_attend_with_are_refused_by_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 97}
    config = LlamaConfig(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=12)
    model = attach(LlamaForCausalLM(config), EdgeInfiniteConfig(GEOMETRY, gate_rank=8))
    with pytest.raises(EdgeInfiniteError, match="heads of 12 dimensions, as LlamaForCausalLM"):
        BACKEND.export_graphs(
            WeightRequest(model, recipe_named("none")), tmp_path, "cpu", lambda *_: None
        )
    assert not list(tmp_path.iterdir())


def test_softcaps_and_sliding_windows_by_layer_are_accepted() -> None:
    """`test_architectures.py` shows that they compute the same as PyTorch."""
    facts = architecture_of(tiny_llama())
    layers = (LayerFacts(sliding_window=8, softcap=2.0), LayerFacts())
    BACKEND.check_architecture(dataclasses.replace(facts, layers=layers), GEOMETRY)
