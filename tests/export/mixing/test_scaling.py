"""Scaled channels: the same function, and outliers that no longer cost anything."""

from __future__ import annotations

import pytest
import torch
from tiny_mamba2 import tiny_falcon_h1, tiny_granite_h
from tiny_qwen3_5 import tiny_qwen3_5
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel

from edgeinfinite.export.mixing.curvature import collect
from edgeinfinite.export.mixing.scaling import scale_inputs
from edgeinfinite.export.onnx.quantize import quantize
from edgeinfinite.export.recipes import WeightFormat
from tiny import VOCABULARY, tiny_family, tiny_llama

TEXTS = torch.randint(0, VOCABULARY, (8, 48), generator=torch.Generator().manual_seed(0))


def tiny_gemma() -> PreTrainedModel:
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=16,
        initializer_range=0.3,
    )
    model = Gemma3ForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.normal_(0, 0.2)
    return model


def with_outliers(model: PreTrainedModel) -> PreTrainedModel:
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[3] *= 100.0
    return model.requires_grad_(False)


@pytest.mark.parametrize("build", [tiny_llama, tiny_gemma])
def test_a_scaled_model_computes_the_same(build):
    model = with_outliers(build())
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    with torch.no_grad():
        before = model(input_ids=TEXTS).logits
        assert scale_inputs(model, statistics, ()) == 2 * 3
        after = model(input_ids=TEXTS).logits
    assert float((after - before).norm() / before.norm()) < 1e-4


@pytest.mark.parametrize(
    ("build", "scaled"),
    [
        (lambda: tiny_family("Cohere"), 2),
        (tiny_qwen3_5, 2 + 6 * 2),
        (tiny_granite_h, 2),
        (tiny_falcon_h1, 0),
    ],
    ids=["Cohere", "Qwen3.5", "Granite 4 H", "Falcon-H1"],
)
def test_channels_that_something_else_reads_are_left_alone(build, scaled):
    """Cohere's MLP and Falcon-H1's SSM read what attention reads. Qwen3.5's norms add 1."""
    model = build().requires_grad_(False)
    texts = TEXTS[:2, :24]
    statistics = collect(model, texts.tolist(), lambda *_: None)
    with torch.no_grad():
        before = model(input_ids=texts).logits
        assert scale_inputs(model, statistics, ()) == scaled
        after = model(input_ids=texts).logits
    assert float((after - before).norm() / before.norm()) < 1e-4


def test_statistics_of_a_scaled_model_are_those_that_it_would_give():
    model = with_outliers(tiny_llama())
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    scale_inputs(model, statistics, ())
    again = collect(model, TEXTS.tolist(), lambda *_: None)
    for name, weight in again.items():
        torch.testing.assert_close(statistics[name].inputs, weight.inputs, rtol=0.01, atol=1e-4)
        torch.testing.assert_close(statistics[name].outputs, weight.outputs, rtol=0.01, atol=1e-6)


def test_an_outlier_no_longer_ruins_the_rounding():
    model = with_outliers(tiny_gemma())
    weight = model.model.layers[0].mlp.down_proj.weight
    form, name = WeightFormat(4, symmetric=False), "model.layers.0.mlp.down_proj.weight"
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    before = statistics[name].loss(quantize(weight, form).dequantized() - weight)
    scale_inputs(model, statistics, ())
    after = statistics[name].loss(quantize(weight, form).dequantized() - weight)
    assert after < 0.2 * before


def test_weights_whose_integers_are_kept_are_left_alone():
    model = with_outliers(tiny_llama())
    kept = {name for name, p in model.named_parameters() if p.dim() == 2}
    before = {name: p.clone() for name, p in model.named_parameters()}
    statistics = collect(model, TEXTS.tolist(), lambda *_: None)
    assert scale_inputs(model, statistics, kept) == 0
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
