"""Calibrated rounding keeps the outputs, not the weight."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.export.mixing.gptq import round_by_inputs
from edgeinfinite.export.onnx.quantize import choose_grid, quantize, take_over
from edgeinfinite.export.recipes import WeightFormat


def correlated_inputs() -> torch.Tensor:
    """The mean of x xᵀ of inputs that go together, as hidden states do, `[96, 96]`."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 12, generator=generator) @ torch.randn(12, 96, generator=generator)
    x += 0.3 * torch.randn(2000, 96, generator=generator)
    return x.T @ x / len(x)


WEIGHT = torch.randn(40, 96, generator=torch.Generator().manual_seed(1))


def output_error(rounded: torch.Tensor, inputs: torch.Tensor) -> float:
    error = rounded - WEIGHT
    return float(((error @ inputs) * error).sum())


@pytest.mark.parametrize("form", [WeightFormat(4, symmetric=False), WeightFormat(5)])
def test_outputs_move_far_less_than_with_the_nearest_codes(form):
    inputs = correlated_inputs()
    chosen = round_by_inputs(WEIGHT, inputs, form, choose_grid)
    nearest = quantize(WEIGHT, form).dequantized()
    assert output_error(chosen.dequantized(), inputs) < 0.5 * output_error(nearest, inputs)


@pytest.mark.parametrize("form", [WeightFormat(4, symmetric=False), WeightFormat(5)])
def test_the_back_end_takes_the_codes_as_they_are(form):
    chosen = round_by_inputs(WEIGHT, correlated_inputs(), form, choose_grid)
    taken = take_over(chosen)
    assert torch.equal(taken.codes, chosen.codes) and taken.offsets is None
    torch.testing.assert_close(taken.dequantized(), chosen.dequantized(), rtol=1e-3, atol=1e-6)


def test_an_input_that_is_never_used_and_a_weight_of_zeros_do_no_harm():
    inputs = correlated_inputs()
    inputs[3], inputs[:, 3] = 0.0, 0.0
    for weight in (WEIGHT, torch.zeros(4, 96)):
        chosen = round_by_inputs(weight, inputs, WeightFormat(4, symmetric=False), choose_grid)
        assert chosen.dequantized().isfinite().all()
        assert float((chosen.dequantized() - weight).abs().max()) < 2.0
