"""Rounding by inputs, weight by weight, and what formats cost after it."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.export.executorch import BACKEND as EXECUTORCH
from edgeinfinite.export.mixing.calibrated import CalibratedRounding
from edgeinfinite.export.mixing.curvature import collect
from edgeinfinite.export.mixing.measure import measure
from edgeinfinite.export.onnx import BACKEND as ONNX
from edgeinfinite.export.recipes import WeightFormat, exact_recipe, recipe_named
from edgeinfinite.models.checkpoint.loading import Backbone
from tiny import VOCABULARY, tiny_llama

TEXTS = torch.randint(0, VOCABULARY, (16, 48), generator=torch.Generator().manual_seed(0))
FOUR = WeightFormat(4, symmetric=False)


@pytest.fixture(scope="module")
def model():
    model = tiny_llama().requires_grad_(False)
    model.lm_head.weight = model.model.embed_tokens.weight
    return model


@pytest.fixture(scope="module")
def statistics(model):
    return collect(model, TEXTS.tolist(), lambda *_: None)


def matrices(model) -> list[str]:
    """Of whole groups; the embedding comes first."""
    return [n for n, p in model.named_parameters() if p.dim() == 2 and p.shape[1] % FOUR.group == 0]


def rounding(model, statistics, backend=ONNX) -> CalibratedRounding:
    return CalibratedRounding(model, backend, statistics, lambda *_: None)


def test_every_linear_weight_of_few_bits_is_rounded_and_loses_less(model, statistics):
    names = matrices(model)
    eight = names[3]
    formats = {name: WeightFormat(8) if name == eight else FOUR for name in names}
    found = rounding(model, statistics).round(exact_recipe("int4", formats), {})
    assert set(found) == set(names) - {eight, "model.embed_tokens.weight"}
    calibrated = nearest = 0.0
    for name, weight in found.items():
        original = model.get_parameter(name)
        calibrated += statistics[name].loss(weight.dequantized() - original)
        rounded, _ = ONNX.rounded(original, FOUR, embedding=False)
        nearest += statistics[name].loss(rounded - original)
    assert calibrated < 0.9 * nearest


def test_what_was_rounded_before_in_the_same_format_is_taken_again(model, statistics):
    names = matrices(model)[1:]
    first = exact_recipe("int4", dict.fromkeys(names, FOUR))
    other = exact_recipe("int4", dict.fromkeys(names, FOUR) | {names[0]: WeightFormat(5)})
    calibrated = rounding(model, statistics)
    known = calibrated.round(first, {})
    again = calibrated.round(other, {}, known)
    assert again[names[0]].bits == 5
    assert all(again[name] is known[name] for name in names[1:])


def test_integers_of_the_checkpoint_are_not_rounded(model, statistics):
    names = matrices(model)[1:]
    recipe, calibrated = (
        exact_recipe("int4", dict.fromkeys(names, FOUR)),
        rounding(model, statistics),
    )
    integers = {names[0]: calibrated.round(recipe, {})[names[0]]}
    assert names[0] not in calibrated.round(recipe, integers)


def test_a_back_end_without_a_format_gets_its_own_of_as_many_bits_or_none(model, statistics):
    names = matrices(model)[1:]
    formats = dict.fromkeys(names, FOUR) | {names[0]: WeightFormat(6)}
    found = rounding(model, statistics, EXECUTORCH).round(exact_recipe("int4", formats), {})
    assert names[0] not in found  # becomes rows of 8 bits
    assert all(weight.symmetric and bool((weight.scales > 0).all()) for weight in found.values())


def test_formats_cost_less_after_rounding_by_inputs_but_8_bits_as_much(model, statistics):
    backbone = Backbone("tiny", model, tokenizer=None)  # type: ignore[arg-type]
    recipe = recipe_named("int4")
    choices = measure(backbone, ONNX, recipe, lambda: statistics, lambda *_: None)
    mix = {
        name: next(c for c in options if c.format == str(FOUR))
        for name, options in choices.items()
        if name in matrices(model)
    }
    choices = {name: choices[name] for name in mix}
    formats = {name: FOUR for name in mix if name != "model.embed_tokens.weight"}
    calibrated = rounding(model, statistics)
    rounded = calibrated.round(exact_recipe("int4", formats), {})
    alone = "model.layers.1.mlp.up_proj.weight"
    del rounded[alone]
    after = calibrated.choices(choices, mix, rounded)
    sibling = "model.layers.0.mlp.up_proj.weight"
    shares = {}
    for name, options in choices.items():
        for before, now in zip(options, after[name], strict=True):
            eight = before.format.startswith("int8")
            assert (now.format, now.bytes) == (before.format, before.bytes)
            assert now.loss == before.loss if eight else now.loss <= before.loss
            shares.setdefault(name, now.loss / before.loss)
    assert shares[alone] == pytest.approx(shares[sibling])  # the median of its kind
    assert shares["model.embed_tokens.weight"] == 1.0
    assert sum(s < 0.9 for s in shares.values()) > len(shares) / 2
