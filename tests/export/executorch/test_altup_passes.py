"""What Gemma 3n has beside other decoders, in XNNPACK's operators: streams, written parts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from transformers import Gemma3nTextConfig
from transformers.models.gemma3n.modeling_gemma3n import Gemma3nTextAltUp, Gemma3nTextMLP

from edgeinfinite.export.executorch.edge import unknown_operators
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.passes.results_of_their_own import results_of_their_own

SIZES: dict[str, Any] = {
    "vocab_size": 8,
    "hidden_size": 16,
    "intermediate_size": [24],
    "num_hidden_layers": 1,
    "activation_sparsity_pattern": [0.9],
    "altup_num_inputs": 3,
    "layer_types": ["full_attention"],
    "num_kv_shared_layers": 0,
}


class Streams(nn.Module):
    """A layer's way through AltUp: predicted, corrected, and all streams but one added to."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = Gemma3nTextConfig(**SIZES)
        self.altup, self.mlp = Gemma3nTextAltUp(config), Gemma3nTextMLP(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, 16]` to the same."""
        predicted = self.altup.predict(torch.stack([x, x * 2.0, x - 1.0]))
        corrected = self.altup.correct(predicted, self.mlp(predicted[0]))
        first = corrected[0].clone()
        corrected[1:] += first
        return torch.stack([corrected[0], corrected[1] - corrected[2], first]).mean(dim=0)


class Written(nn.Module):
    """Writes into a part of a tensor of which a view is read again."""

    def __init__(self, *, afterwards: bool) -> None:
        super().__init__()
        self.afterwards = afterwards

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[3, T]` to `[T]`."""
        total = x + 1.0
        first, last = total[0], total[2]
        before = first * last
        total[1:] += x[:1]
        return total.sum(0) + (last if self.afterwards else before)


def program_of(module: nn.Module, x: torch.Tensor, axis: int) -> torch.export.ExportedProgram:
    tokens = {axis: torch.export.Dim("T", min=2, max=64)}
    return torch.export.export(
        module.eval().requires_grad_(False), (x,), dynamic_shapes=({**tokens},), strict=False
    )


def test_streams_are_what_transformers_makes_of_them() -> None:
    module, x = Streams(), torch.randn(1, 5, 16)
    program = program_of(module, x, 1)
    found = run_passes(program)
    assert found["streams"] == 2 and found["folded_numbers"] and found["results_of_their_own"] == 3
    assert not unknown_operators(program)
    for case in (x, torch.randn(1, 9, 16)):
        got = program.module(check_guards=False)(case)
        torch.testing.assert_close(got, module(case), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("afterwards", [False, True])
def test_a_part_is_written_only_where_no_older_view_is_read_later(afterwards: bool) -> None:
    module, x = Written(afterwards=afterwards), torch.randn(3, 4)
    program = program_of(module, x, 1)
    assert results_of_their_own(program) == (not afterwards)
    program.graph_module.recompile()
    torch.testing.assert_close(program.module(check_guards=False)(x), module(x))
