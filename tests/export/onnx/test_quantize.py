"""Choosing codes, scales, zero points and offsets."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.quantize import can_quantize, quantize
from edgeinfinite.export.recipes import Recipe, Rule, WeightFormat, recipe_named

INT8 = WeightFormat(8)
INT4 = WeightFormat(4)
ASYMMETRIC = WeightFormat(4, symmetric=False)


def weight(rows: int = 48, columns: int = 96) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))


def error(w: torch.Tensor, **how: object) -> float:
    return float((quantize(w, **how).dequantized() - w).norm() / w.norm())  # type: ignore[arg-type]


@pytest.mark.parametrize(("form", "limit"), [(INT8, 0.007), (INT4, 0.09), (ASYMMETRIC, 0.085)])
def test_quantizing_loses_no_more_than_its_bits(form, limit):
    assert error(weight(), format=form) < limit


def test_weights_of_a_q8_0_checkpoint_are_kept_exactly():
    codes = torch.randint(-127, 128, (16, 4, 32), generator=torch.Generator().manual_seed(0))
    codes[:, :, 0] = 127  # Q8_0's scale makes the largest weight 127
    scales = torch.rand(16, 4, 1).half().float()
    w = (codes * scales).flatten(1)
    torch.testing.assert_close(quantize(w, INT8).dequantized(), w, rtol=1e-6, atol=0)


def test_weights_of_a_q4_1_checkpoint_are_kept_nearly_exactly_thanks_to_offsets():
    codes = torch.randint(0, 16, (64, 4, 32), generator=torch.Generator().manual_seed(0))
    codes[:, :, :2] = torch.tensor([0, 15])  # Q4_1's scale and minimum make it so
    scales = (0.01 + torch.rand(64, 4, 1)).half().float()
    w = (codes * scales - scales * (5 + 5 * torch.rand(64, 4, 1))).flatten(1)
    assert error(w, format=ASYMMETRIC, offsets=True) < 0.01
    assert error(w, format=ASYMMETRIC) > 0.04


def test_a_checkpoint_never_quantized_before_gets_no_offsets():
    assert quantize(weight(), ASYMMETRIC, offsets=True).offsets is None


def test_zeros_stay_zeros():
    w = torch.zeros(4, 64)
    for form in (INT8, INT4, ASYMMETRIC):
        assert torch.equal(quantize(w, form, offsets=True).dequantized(), w)


@pytest.mark.parametrize("form", [INT8, INT4, ASYMMETRIC])
def test_scales_are_halves(form):
    scales = quantize(weight() * 0.01, form).scales
    assert torch.equal(scales, scales.half().float())


def test_weights_that_do_not_divide_into_groups_are_left_alone():
    assert not can_quantize(torch.zeros(4, 40), INT8)
    assert not can_quantize(torch.zeros(64), INT8)


def test_the_first_rule_that_matches_decides():
    recipe = Recipe("r", (Rule(r"head", None), Rule(r"weight$", INT8), Rule(r"up", INT4)))
    assert recipe.format_of("lm_head.weight") is None
    assert recipe.format_of("up.weight") == INT8
    assert recipe.format_of("up.bias") == INT4
    assert recipe.format_of("gate.bias") is None


def test_gates_norms_and_biases_are_left_alone():
    for name in ("int8", "int4"):
        recipe = recipe_named(name)
        for left in ("self_attn.memory_gate.w1.weight", "input_layernorm.weight", "q_proj.bias"):
            assert recipe.format_of(f"model.layers.0.{left}") is None
        assert recipe.format_of("model.embed_tokens.weight") == INT8


def test_an_unknown_recipe_is_refused():
    with pytest.raises(EdgeInfiniteError, match="none, int8, int4"):
        recipe_named("int3")
