"""A short convolution as products computes what it did; whatever isn't one is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from edgeinfinite.export.executorch.passes.graph_tools import finish
from edgeinfinite.export.executorch.passes.short_convolutions import short_convolutions

E = 6


class Layer(nn.Module):
    """A gated convolution over a state, as LFM2's, with what a test changes.

    Args:
        kernel: its length, R + 1.
        bias: whether it has one.
        convolve: from the joined columns, the kernel and the bias to all results.
    """

    def __init__(
        self, kernel: int, bias: bool, convolve: Callable[..., torch.Tensor] | None = None
    ) -> None:
        super().__init__()
        torch.manual_seed(kernel)
        self.projection = nn.Linear(E, 3 * E, bias=False)
        self.conv = nn.Conv1d(E, E, kernel, groups=E, bias=bias, padding=kernel - 1)
        self.convolve = convolve

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = x.shape[1]
        before, behind, new = self.projection(x).transpose(-1, -2).chunk(3, dim=-2)
        joined = torch.cat([state, before * new], dim=-1)
        weight, bias = self.conv.weight, self.conv.bias
        if self.convolve is None:
            padding = weight.shape[-1] - 1
            result = functional.conv1d(joined, weight, bias, padding=padding, groups=E)
            result = result[:, :, : padding + tokens]
        else:
            result = self.convolve(joined, weight, bias)
        return behind * result[:, :, -tokens:], joined[..., -state.shape[-1] :]


def program_of(layer: Layer, columns: int, tokens: int, *, dynamic: bool) -> Any:
    example = torch.zeros(1, tokens, E), torch.zeros(1, E, columns)
    shapes = ({1: torch.export.Dim("T", min=2, max=64)}, None) if dynamic else None
    return torch.export.export(
        layer.eval().requires_grad_(False),
        example,
        dynamic_shapes=shapes,
        strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,
    )


def operators(program: Any) -> set[Any]:
    return {node.target for node in program.graph.nodes}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", [2, 3, 5])
def test_any_number_of_tokens_gives_the_same_results_and_states(kernel: int, bias: bool) -> None:
    layer = Layer(kernel, bias)
    many = program_of(layer, kernel - 1, 7, dynamic=True)
    one = program_of(layer, kernel - 1, 1, dynamic=False)
    for program in (many, one):
        assert short_convolutions(program) == 1
        finish(program)
        assert torch.ops.aten.conv1d.default not in operators(program)
    state, kept = torch.randn(1, E, kernel - 1), []
    for tokens in (1, 2, 3, 7, 40):
        x = torch.randn(1, tokens, E)
        wanted = layer(x, state)
        module = (one if tokens == 1 else many).module(check_guards=False)
        found = module(x, state)
        torch.testing.assert_close(found[0], wanted[0], rtol=1e-5, atol=1e-6)
        assert torch.equal(found[1], wanted[1])  # moved by ones and zeros: not a bit is lost
        kept.append(state)
        state = wanted[1]
    assert len({tuple(one.flatten().tolist()) for one in kept}) == len(kept)


@pytest.mark.parametrize(
    "convolve",
    [
        lambda x, w, b: functional.conv1d(x, w, b, padding=6, groups=E, stride=2),
        lambda x, w, b: functional.conv1d(x, w, b, padding=4, groups=E, dilation=2),
        lambda x, w, b: functional.conv1d(x * 2, w, b, padding=2, groups=E)[:, :, :9],
        lambda x, w, b: functional.conv1d(x, w * x.mean(), b, padding=2, groups=E)[:, :, :9],
        lambda x, w, b: functional.conv1d(x, w.repeat(1, E, 1), b, padding=2)[:, :, :9],
        lambda x, w, b: functional.conv1d(x, w, b, padding=2, groups=E)[:, :, 1:10],
    ],
    ids=["stride", "dilation", "scaled input", "computed kernel", "mixed channels", "other cut"],
)
def test_whatever_isnt_such_a_convolution_is_left_alone(
    convolve: Callable[..., torch.Tensor],
) -> None:
    program = program_of(Layer(3, True, convolve), 2, 7, dynamic=False)
    assert short_convolutions(program) == 0
    assert torch.ops.aten.conv1d.default in operators(program)
