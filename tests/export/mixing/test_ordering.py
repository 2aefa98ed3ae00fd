"""Ordered channels: the same function, and the costly ones first."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.mixing.curvature import collect
from edgeinfinite.export.mixing.ordering import order_inputs
from edgeinfinite.export.mixing.scaling import scale_inputs
from edgeinfinite.export.recipes import WeightFormat
from tiny import VOCABULARY, wide_llama

TEXTS = torch.randint(0, VOCABULARY, (8, 48), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("tied", [True, False])
def test_an_ordered_model_computes_the_same(tied):
    model = wide_llama(tied=tied)
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    with torch.no_grad():
        before = model(input_ids=TEXTS).logits
        assert order_inputs(model, statistics, BACKEND, ()) == len(model.model.layers) + 1
        after = model(input_ids=TEXTS).logits
    assert float((after - before).norm() / before.norm()) < 1e-5


def test_statistics_of_an_ordered_model_are_those_that_it_would_give():
    model = wide_llama()
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    order_inputs(model, statistics, BACKEND, ())
    again = collect(model, TEXTS.tolist(), lambda *_: None)
    for name, weight in again.items():
        torch.testing.assert_close(statistics[name].inputs, weight.inputs, rtol=0.01, atol=1e-4)
        torch.testing.assert_close(statistics[name].outputs, weight.outputs, rtol=0.01, atol=1e-6)


def test_a_quarter_of_the_inputs_in_8_bits_spares_more_once_they_are_ordered():
    losses = []
    for ordered in (False, True):
        model = wide_llama()
        statistics = collect(model, TEXTS.tolist(), lambda *_: None)
        scale_inputs(model, statistics, ())
        if ordered:
            order_inputs(model, statistics, BACKEND, ())
        total = 0.0
        for name, found in statistics.items():
            weight = model.get_parameter(name)
            if "layers" in name and weight.shape[1] % 128 == 0:
                form = WeightFormat(4, leading=weight.shape[1] // 4)
                values, size = BACKEND.rounded(weight, form, embedding=False)
                total += found.loss(values - weight)
                rows, columns = weight.shape
                twice = rows * columns // 4  # the first inputs have two codes of 4 bits
                assert 0 <= size - (rows * columns + twice) * 9 // 16 < 1000
        losses.append(total)
    assert losses[1] < 0.95 * losses[0]


def test_a_model_whose_integers_are_kept_is_left_alone():
    model = wide_llama()
    before = {name: p.clone() for name, p in model.named_parameters()}
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    assert order_inputs(model, statistics, BACKEND, ("model.layers.0.mlp.up_proj.weight",)) == 0
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
