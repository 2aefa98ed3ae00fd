"""Calibrated rounding keeps the outputs, not the weight."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from edgeinfinite.export.executorch import groups
from edgeinfinite.export.mixing.grids import choose_grid, offset_steps
from edgeinfinite.export.mixing.rounding import inverse_factor, round_by_inputs
from edgeinfinite.export.onnx.quantize import quantize, take_over
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.scale_type import ScaleType

HALVES = ScaleType(torch.float16, signed=True)
POSITIVE = ScaleType(torch.bfloat16, signed=False)
FORMATS = [WeightFormat(4, symmetric=False), WeightFormat(4), WeightFormat(5)]


def correlated_inputs() -> torch.Tensor:
    """The mean of x xᵀ of inputs that go together, as hidden states do, `[96, 96]`."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 12, generator=generator) @ torch.randn(12, 96, generator=generator)
    x += 0.3 * torch.randn(2000, 96, generator=generator)
    return x.T @ x / len(x)


WEIGHT = torch.randn(40, 96, generator=torch.Generator().manual_seed(1))
FACTOR = inverse_factor(correlated_inputs())


def output_error(rounded: torch.Tensor) -> float:
    error = rounded - WEIGHT
    return float(((error @ correlated_inputs()) * error).sum())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("scale_type", [HALVES, POSITIVE])
def test_outputs_move_far_less_than_with_the_nearest_codes(form, scale_type):
    chosen = round_by_inputs(WEIGHT, FACTOR, form, scale_type)
    nearest = quantize(WEIGHT, form).dequantized()
    assert output_error(chosen.dequantized()) < 0.5 * output_error(nearest)


@pytest.mark.parametrize("form", FORMATS)
def test_onnx_takes_the_codes_as_they_are(form):
    chosen = round_by_inputs(WEIGHT, FACTOR, form, HALVES)
    taken = take_over(chosen)
    assert torch.equal(taken.codes, chosen.codes) and taken.offsets is None
    assert torch.equal(taken.dequantized(), chosen.dequantized())


def test_executorch_takes_the_codes_as_they_are():
    chosen = round_by_inputs(WEIGHT, FACTOR, WeightFormat(4), POSITIVE)
    assert bool((chosen.scales > 0).all())
    taken = groups.take_over(chosen)
    assert taken.offsets is None and torch.equal(taken.dequantized(), chosen.dequantized())


def test_offsets_are_multiples_of_a_step_a_row_and_move_outputs_less():
    form = WeightFormat(4, offsets=True)
    chosen = round_by_inputs(WEIGHT, FACTOR, form, POSITIVE)
    assert chosen.levels is not None and bool((chosen.scales > 0).all())
    multiples = (chosen.levels + 8 * chosen.scales) / offset_steps(WEIGHT, 32, POSITIVE).unsqueeze(
        1
    )
    torch.testing.assert_close(multiples, multiples.round(), atol=1e-3, rtol=0)
    assert float(multiples.min()) >= -8 and float(multiples.max()) <= 7
    without = round_by_inputs(WEIGHT, FACTOR, WeightFormat(4), POSITIVE)
    assert output_error(chosen.dequantized()) < 0.95 * output_error(without.dequantized())
    taken = groups.take_over(chosen)
    torch.testing.assert_close(taken.dequantized(), chosen.dequantized())


def test_an_input_that_is_never_used_and_a_weight_of_zeros_do_no_harm():
    inputs = correlated_inputs()
    inputs[3], inputs[:, 3] = 0.0, 0.0
    forms = ((FORMATS[0], HALVES), (WeightFormat(4, offsets=True), POSITIVE))
    for weight, (form, scale_type) in product((WEIGHT, torch.zeros(4, 96)), forms):
        chosen = round_by_inputs(weight, inverse_factor(inputs), form, scale_type)
        assert chosen.dequantized().isfinite().all()
        assert float((chosen.dequantized() - weight).abs().max()) < 2.0


@pytest.mark.parametrize("form", FORMATS)
def test_columns_that_count_more_are_rounded_better(form):
    block = torch.randn(64, 32, generator=torch.Generator().manual_seed(3))
    weights = torch.ones(32)
    weights[:4] = 100.0

    def error(of: torch.Tensor) -> float:
        scale, zero = choose_grid(block, of, form, HALVES)
        codes = (block / scale[:, None]).round().add(zero[:, None]).clamp(0, 2**form.bits - 1)
        moved = (codes - zero[:, None]) * scale[:, None] - block
        return float((weights * moved.square()).sum())

    assert error(weights) < 0.8 * error(torch.ones(32))
