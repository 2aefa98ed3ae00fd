"""4-bit weights for XNNPACK: offsets help, and the best scale is found."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from edgeinfinite.export.executorch.groups import (
    GROUP,
    SCALE_TYPE,
    choose_groups,
    refined,
    stepped_groups,
    take_over,
)
from edgeinfinite.export.executorch.layers import OffsetLinear, RefinedLinear
from edgeinfinite.export.executorch.quantize import _packed_linear
from edgeinfinite.export.mixing.grids import offset_steps
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.models.weights.grouped_weight import GroupedWeight


def weight_of_levels(rows: int = 40, groups: int = 3) -> torch.Tensor:
    """As a Q4_1 file gives it: w = d q + m, both ends of 0..15 in use."""
    torch.manual_seed(0)
    codes = torch.randint(0, 16, (rows, groups, GROUP)).float()
    codes[..., 0], codes[..., 1] = 0.0, 15.0
    scales = (torch.rand(rows, groups, 1) * 0.02 + 0.005).half().float()
    levels = (-7.3 * scales + 0.02 * torch.randn(rows, groups, 1)).half().float()
    return (codes * scales + levels).flatten(1)


def relative_error(weight: torch.Tensor, other: torch.Tensor) -> float:
    return float((weight - other).norm() / weight.norm())


def test_a_weight_of_levels_comes_back_but_for_bfloat16s_rounding() -> None:
    weight = weight_of_levels()
    chosen = choose_groups(weight)
    assert chosen.offsets is not None
    assert relative_error(weight, chosen.dequantized()) < 2e-3  # bfloat16 keeps 8 bits
    without = choose_groups(torch.randn(40, 96))
    assert without.offsets is None


def test_scales_are_what_xnnpack_stores() -> None:
    for weight in (weight_of_levels(), torch.randn(8, 64), torch.zeros(8, 64)):
        chosen = choose_groups(weight)
        torch.testing.assert_close(chosen.scales.bfloat16().float(), chosen.scales, rtol=0, atol=0)
        assert chosen.scales.min() > 0 and chosen.codes.abs().max() <= 8
        assert chosen.dequantized().isfinite().all()


@pytest.mark.parametrize("levels", [False, True])
def test_integers_of_4_bits_are_taken_over_but_for_bfloat16s_rounding(levels) -> None:
    """Of scales of either sign, as Q4_0 has them."""
    torch.manual_seed(0)
    codes = torch.randint(0, 16, (12, 96)).to(torch.uint8)
    scales = (torch.rand(12, 3) + 0.1) * torch.tensor([1.0, -1.0, 1.0])
    weight = GroupedWeight(4, 32, codes, scales, torch.randn(12, 3) if levels else None)
    taken = take_over(weight)
    assert taken.scales.min() > 0 and taken.codes.min() == -8 and taken.codes.max() == 7
    assert relative_error(weight.dequantized(), taken.dequantized()) < 2e-3


def test_no_range_of_the_codes_would_lose_less() -> None:
    torch.manual_seed(0)
    weight = torch.randn(64, 128)
    chosen = relative_error(weight, choose_groups(weight).dequantized())
    groups = weight.unflatten(1, (-1, GROUP))
    for reach in torch.linspace(4, 9, 21):
        scale = groups.abs().amax(2, keepdim=True) / reach
        codes = (groups / scale).round().clamp(-8, 7)
        assert chosen < relative_error(weight, (codes * scale).flatten(1))


def test_a_layer_with_offsets_computes_what_the_weight_does() -> None:
    weight = weight_of_levels()
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight = nn.Parameter(weight)
    packed, kind = _packed_linear(layer, WeightFormat(4))
    assert isinstance(packed, OffsetLinear) and kind == "int4 symmetric g32 with int8 offsets"
    x = torch.randn(1, 7, weight.shape[1]) + 0.5  # sums that aren't near zero
    with torch.no_grad():
        assert relative_error(layer(x), packed(x)) < 1e-2  # inputs are rounded to 8 bits
        packed.offsets.weight = nn.Parameter(torch.zeros(weight.shape[0], 3))
        assert relative_error(layer(x), packed(x)) > 5e-2


def test_inputs_that_do_not_divide_into_groups_get_eight_bits() -> None:
    packed, kind = _packed_linear(nn.Linear(48, 8), WeightFormat(4))
    assert isinstance(packed, nn.Linear) and kind == "int8 symmetric, one scale a row"


@pytest.mark.parametrize("inputs", [32, 64, 576, 1024, 1056])
def test_offsets_in_one_product_with_any_number_of_groups(inputs: int) -> None:
    weight, x = torch.randn(8, inputs), torch.randn(1, 3, inputs)
    for first in {0, 32, inputs - 32} - {inputs}:
        rest, steps = (
            stepped_groups(weight[:, first:]),
            offset_steps(weight[:, first:], GROUP, SCALE_TYPE),
        )
        groups = refined(weight[:, :first], rest, steps)
        assert groups.codes.shape[1] == inputs + first + GROUP * math.ceil(inputs / GROUP**2)
        codes = nn.Linear(groups.codes.shape[1], 8, bias=False)
        codes.weight = nn.Parameter(groups.dequantized(), requires_grad=False)
        layer = RefinedLinear(codes, inputs, first, sums=True)
        whole = groups.folded(inputs, first)
        torch.testing.assert_close(layer(x), x @ whole.T, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(whole[:, first:], rest.dequantized())
