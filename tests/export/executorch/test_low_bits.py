"""Architectures whose layers XNNPACK takes in another way once their weights are rounded.

An export compares the program with PyTorch, value by value (`parity`, `exact`), and fails if it
can't be loaded. The families of `test_architectures.py` are in float32.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from tiny_artifact import VOCABULARY, tiny_checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.executorch.passes.rope_tables import RopeTables
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.models.geometry_options import GeometryOptions

LENGTHS = {"sink_length": 8, "segment_length": 16, "window_length": 24}


@pytest.mark.parametrize(
    "family",
    [
        "ernie4_5",  # V is needed before Q and K, and all of them round one input
        "starcoder2",  # its norms are LayerNorms with biases
    ],
)
def test_a_rounded_program_loads_and_is_exact(family: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        family,
        vocab_size=VOCABULARY + 6,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=256,
        initializer_range=0.1,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = AutoModelForCausalLM.from_config(config)
    checkpoint = tiny_checkpoint(tmp_path / "checkpoint", model=model)
    folder = export_artifact(
        ExportOptions(
            model=str(checkpoint),
            output=tmp_path / "artifact",
            backend="executorch",
            quantize="int4",
            geometry=GeometryOptions(**LENGTHS),
        )
    )
    found = read_manifest(folder).parity
    assert found["exact:logits"] < 1e-5


def test_rows_of_multimodal_positions_read_the_angles_of_the_text() -> None:
    def rotary(x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        angles = positions[..., None] * torch.tensor([1.0, 0.1, 0.5, 0.2])
        return angles.cos(), angles.sin()

    tables = RopeTables(rotary, 9)  # type: ignore[arg-type]
    positions = torch.tensor([[3, 4, 7]])
    for found, wanted in zip(
        tables(torch.zeros(1), positions.expand(3, 1, 3)), rotary(positions, positions), strict=True
    ):
        assert torch.equal(found, wanted)
