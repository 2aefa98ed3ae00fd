"""The bytes of weights are known before a weight is rounded, and are those of the rounded ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND as EXECUTORCH
from edgeinfinite.export.onnx import BACKEND as ONNX
from edgeinfinite.export.onnx.passes.quantized_weights import quantize_weights
from edgeinfinite.export.recipes import WeightFormat, recipe_named
from edgeinfinite.models.weights.grouped_weight import GroupedWeight
from tiny import wide_llama

GRID, HELD = (f"model.layers.0.mlp.{name}_proj.weight" for name in ("gate", "up"))
"""One has groups of whole numbers, for which offsets pay; one is taken over."""


@pytest.fixture(scope="module")
def model():
    model = wide_llama(tied=True).requires_grad_(False)
    weight = model.get_parameter(GRID)
    weight.copy_(torch.randint(0, 16, weight.shape) * 0.01 + 0.034)
    return model


def integers(rows: int, columns: int, kind: str) -> GroupedWeight:
    scales = torch.full((rows, columns // 32), 0.5)
    levels = None if kind == "a negative scale" else -4.0 * scales
    if levels is None:
        scales[-1, -1] *= -1
    elif kind == "an offset":
        levels[-1, -1] += 0.1
    codes = torch.randint(0, 16, (rows, columns), dtype=torch.uint8)
    return GroupedWeight(4, 32, codes, scales, levels)


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        ("int8", None),
        ("int4", None),
        ("int4", "levels"),
        ("int4", "an offset"),
        ("int4", "a negative scale"),
    ],
)
def test_the_bytes_are_those_of_the_rounded_weights(model, recipe, kind):
    rules = recipe_named(recipe)
    known = {HELD: integers(*model.get_parameter(HELD).shape, kind)} if kind else {}
    without_codes = {
        name: replace(weight, codes=torch.zeros((), dtype=torch.uint8).expand(weight.codes.shape))
        for name, weight in known.items()
    }
    rounded = quantize_weights(model, rules, known)
    assert (rounded[GRID].offsets is not None) == (recipe == "int4")
    onnx = executorch = 0
    for name, parameter in model.named_parameters():
        form = rules.format_of(name)
        if form is None:
            onnx, executorch = onnx + parameter.nbytes, executorch + parameter.nbytes
            continue
        onnx += rounded[name].stored_bytes
        form = WeightFormat(8) if form.bits > 4 else WeightFormat(4)
        held = EXECUTORCH.held(known[name], embedding=False) if name in known else None
        executorch += (held or EXECUTORCH.rounded(parameter, form, embedding=False))[1]
    request = WeightRequest(model, rules, without_codes)
    assert ONNX.weights_bytes(request) == onnx
    assert EXECUTORCH.weights_bytes(request) == executorch
