"""Choosing codes, scales, zero points and offsets."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.quantize import can_quantize, quantize, take_over, taken_bytes
from edgeinfinite.export.recipes import Recipe, Rule, WeightFormat, recipe_named
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

INT8 = WeightFormat(8)
INT4 = WeightFormat(4)
ASYMMETRIC = WeightFormat(4, symmetric=False)


def weight(rows: int = 48, columns: int = 96) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))


def error(w: torch.Tensor, **how: object) -> float:
    return float((quantize(w, **how).dequantized() - w).norm() / w.norm())  # type: ignore[arg-type]


@pytest.mark.parametrize(("form", "limit"), [(INT8, 0.007), (INT4, 0.09), (ASYMMETRIC, 0.085)])
def test_quantization_error_is_within_its_bits(form, limit):
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


def chosen(bits: int, *, levels: bool, group: int = 32) -> GroupedWeight:
    """Integers as a file has them."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 2**bits, (24, 128), generator=generator).to(torch.uint8)
    scales = (0.5 + torch.rand(24, 128 // group, generator=generator)).half().float()
    low = -scales * (2**bits - 1) * torch.rand(scales.shape, generator=generator)
    return GroupedWeight(bits, group, codes, scales, low if levels else None)


@pytest.mark.parametrize(("bits", "group"), [(4, 32), (5, 32), (6, 16), (8, 32)])
def test_symmetric_integers_are_kept_exactly(bits, group):
    weight = chosen(bits, levels=False, group=group)
    taken = take_over(weight)
    assert taken.offsets is None and taken.zeros is None
    assert torch.equal(taken.dequantized(), weight.dequantized())


@pytest.mark.parametrize("bits", [4, 5])
def test_integers_with_levels_keep_their_codes_and_lose_next_to_nothing(bits):
    weight = chosen(bits, levels=True)
    taken = take_over(weight)
    exact = weight.dequantized()
    assert torch.equal(taken.codes, weight.codes) and taken.offsets is not None
    step = weight.scales.repeat_interleave(32, 1)
    assert float(((taken.dequantized() - exact) / step).square().mean().sqrt()) < 0.03


def test_levels_that_zero_points_reach_need_no_offsets():
    weight = chosen(4, levels=True)
    whole = GroupedWeight(4, 32, weight.codes, weight.scales, -7.0 * weight.scales)
    assert take_over(whole).offsets is None
    assert torch.equal(take_over(whole).dequantized(), whole.dequantized())


@pytest.mark.parametrize("bits", [5, 6])
@pytest.mark.parametrize("symmetric", [True, False])
def test_codes_of_5_and_6_bits_are_packed_as_codes_of_8(bits, symmetric):
    quantized = quantize(weight(), WeightFormat(bits, symmetric=symmetric))
    assert quantized.codes.max() < 2**bits
    middle = 128 if symmetric else quantized.packed_zeros().unsqueeze(2).int()
    values = (quantized.packed_codes().int() - middle) * quantized.scales.unsqueeze(2)
    assert torch.equal(values.flatten(1), quantized.dequantized())
    assert error(weight(), format=WeightFormat(bits)) < 0.05 / 2 ** (bits - 5)


def test_zeros_stay_zeros():
    w = torch.zeros(4, 64)
    for form in (INT8, INT4, ASYMMETRIC):
        assert torch.equal(quantize(w, form, offsets=True).dequantized(), w)


@pytest.mark.parametrize("form", [INT8, INT4, ASYMMETRIC])
def test_scales_are_halves(form):
    scales = quantize(weight() * 0.01, form).scales
    assert torch.equal(scales, scales.half().float())


def test_scales_too_small_for_halves_are_counted_as_floats():
    plain, small = (quantize(weight() * size, WeightFormat(6)) for size in (1.0, 1e-3))
    assert not torch.equal(small.scales, small.scales.half().float())
    assert plain.stored_bytes == plain.codes.numel() * 6 // 8 + 2 * plain.scales.numel()
    assert small.stored_bytes == plain.stored_bytes + 2 * plain.scales.numel()


def test_one_scale_too_small_for_a_half_makes_floats_of_a_files_integers():
    codes, scales = torch.randint(0, 16, (8, 64), dtype=torch.uint8), torch.full((8, 2), 0.5)
    scales[5, 1] = 1.0001e-6
    weight = GroupedWeight(4, 32, codes, scales, None)
    taken = take_over(weight)
    assert torch.equal(taken.scales, scales)
    assert taken_bytes(weight) == taken.stored_bytes == 8 * 64 // 2 + 4 * 16


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


def test_a_row_of_zeros_leaves_the_scales_of_8_bits_halves():
    """The padding token's row of an embedding."""
    weight = torch.randn(6, 64, generator=torch.Generator().manual_seed(0))
    weight[2] = 0.0
    quantized = quantize(weight, WeightFormat(8))
    assert torch.equal(quantized.scales, quantized.scales.half().float())
    assert not quantized.dequantized()[2].any()


@pytest.mark.parametrize("bits", [4, 6, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_rounding_in_parts_gives_the_same_bits(bits, symmetric, monkeypatch):
    weight = torch.randn(37, 64, generator=torch.Generator().manual_seed(bits))
    form = WeightFormat(bits, 32, symmetric or bits == 8)
    whole = quantize(weight, form)
    monkeypatch.setattr("edgeinfinite.export.onnx.quantize._PART", 1000)
    parts = quantize(weight, form)
    assert torch.equal(parts.codes, whole.codes) and torch.equal(parts.scales, whole.scales)
    assert torch.equal(parts.dequantized(), whole.dequantized())
