"""Statistics that are taken a part at a time are those of the whole."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from every_decoder import TYPES, tiny_decoder
from tiny_gemma4 import MODELS as GEMMAS
from transformers import PreTrainedModel

from edgeinfinite.export.mixing import curvature as statistics
from edgeinfinite.export.mixing import measure
from edgeinfinite.export.mixing.curvature import WeightStatistics, collect
from edgeinfinite.export.mixing.head import logits_of
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.checkpoint.loading import Backbone
from tiny import VOCABULARY, tiny_family, tiny_hybrid, tiny_llama

TEXT = torch.randint(0, VOCABULARY, (1, 40), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["Llama 3", "Granite", "Gemma 2", "OLMo 2", "Phi-4-mini"])
def test_the_head_gives_the_models_own_logits(name):
    """With Granite's factor and Gemma 2's cap, and the model as it was afterwards."""
    model = tiny_family(name)
    decoder = model.base_model
    with torch.no_grad():
        expected = model(input_ids=TEXT).logits
        hidden = decoder(input_ids=TEXT, use_cache=False).last_hidden_state
        torch.testing.assert_close(logits_of(model, hidden), expected)
    assert model.base_model is decoder


def test_the_size_of_the_parts_of_the_head_changes_nothing_but_rounding(monkeypatch):
    """Labels are drawn part by part, so only one is certain: a text whose next token is sure."""
    model = tiny_llama()
    with torch.no_grad():
        model.lm_head.weight *= 1e4
    whole = collect(model, TEXT.tolist(), lambda *_: None)
    monkeypatch.setattr(statistics, "_HEAD_CHUNK", 7)
    parts = collect(model, TEXT.tolist(), lambda *_: None)
    for name, expected in whole.items():
        for field in ("inputs", "outputs", "looked_up", "gradients"):
            one, other = getattr(expected, field), getattr(parts[name], field)
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)
        assert parts[name].forwards == expected.forwards


def made(name: str) -> PreTrainedModel:
    if name in GEMMAS:
        return GEMMAS[name]()
    return tiny_decoder(name) if name in TYPES else tiny_family(name)


FAMILIES = ("Llama 3", "Gemma 2", "Phi-4-mini", "OLMo 2")
HYBRIDS = ("lfm2", "qwen3_5_text", "granitemoehybrid", "falcon_h1")
SHARING = ("gemma3n", "gemma4")  # layers read inputs and caches of others
EXPERTS = ("gpt_oss", "olmoe")


@pytest.mark.parametrize("name", [*FAMILIES, *HYBRIDS, *SHARING, *EXPERTS])
def test_layers_that_are_computed_again_give_the_same_statistics(name, monkeypatch):
    model = made(name).requires_grad_(False)
    again = collect(model, TEXT.tolist(), lambda *_: None)
    assert not any("forward" in vars(layer) for layer in model.get_decoder().layers)
    monkeypatch.setattr(statistics, "_computed_again", lambda *_: nullcontext())
    once = collect(model, TEXT.tolist(), lambda *_: None)
    assert again.keys() == once.keys()
    for weight, found in again.items():
        assert found.forwards == once[weight].forwards
        for field in ("inputs", "outputs", "looked_up", "gradients"):
            one, other = getattr(found, field), getattr(once[weight], field)
            assert (one is None) == (other is None)
            if one is not None:  # gradients of a sum are added up in another order
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_losses_of_a_weights_rows_add_up():
    random = torch.Generator().manual_seed(1)
    rows, width = 12, 8
    of = WeightStatistics(
        inputs=torch.randn(width, width, generator=random).square(),
        outputs=torch.rand(rows, generator=random),
        looked_up=torch.randint(0, rows, (30,), generator=random),
        gradients=torch.randn(30, width, generator=random),
    )
    error = torch.randn(rows, width, generator=random)
    parts = sum(of.loss(error[start : start + 5], start) for start in range(0, rows, 5))
    assert parts == pytest.approx(of.loss(error))


def test_a_weight_is_measured_in_parts_as_it_is_as_a_whole(monkeypatch):
    model = tiny_hybrid("Gemma3", 7).requires_grad_(False)
    backbone = Backbone("tiny", model, tokenizer=None)  # type: ignore[arg-type]
    found = collect(model, TEXT.tolist(), lambda *_: None)

    def choices() -> measure.Choices:
        recipe = recipe_named("int4")
        return measure.measure(backbone, BACKEND, recipe, lambda: found, lambda *_: None)

    whole = choices()
    monkeypatch.setattr(measure, "_PART", 64)
    for name, parts in choices().items():
        for one, other in zip(parts, whole[name], strict=True):
            assert (one.format, one.bytes, one.read) == (other.format, other.bytes, other.read)
            assert one.loss == pytest.approx(other.loss, rel=1e-4)
