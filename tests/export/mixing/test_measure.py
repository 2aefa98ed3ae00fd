"""What weights cost: the estimate against the loss itself; runs that end early; bad input."""

from __future__ import annotations

import json

import pytest
import torch
from torch.nn import functional

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND as EXECUTORCH
from edgeinfinite.export.mixing.calibration import calibration_texts
from edgeinfinite.export.mixing.curvature import collect
from edgeinfinite.export.mixing.measure import Rows, measure
from edgeinfinite.export.mixing.report import frontier, table
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.export.recipes import WeightFormat, exact_recipe, recipe_named
from edgeinfinite.models.checkpoint.loading import Backbone
from tiny import VOCABULARY, tiny_llama

TEXTS = torch.randint(0, VOCABULARY, (16, 48), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    model = tiny_llama().requires_grad_(False)
    model.lm_head.weight = model.model.embed_tokens.weight
    return Backbone("tiny", model, tokenizer=None)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def statistics(backbone):
    return collect(backbone.model, TEXTS.tolist(), lambda *_: None)


def divergence(backbone: Backbone, name: str, error: torch.Tensor) -> float:
    """Nats a token that the predictions move, for a weight with this error."""
    weight = backbone.model.get_parameter(name)
    with torch.no_grad():
        before = backbone.model(input_ids=TEXTS).logits.log_softmax(-1)
        weight += error
        after = backbone.model(input_ids=TEXTS).logits.log_softmax(-1)
        weight -= error
    return float(functional.kl_div(after, before, log_target=True, reduction="sum") / TEXTS.numel())


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.v_proj.weight",
        "model.layers.0.mlp.down_proj.weight",
        "model.layers.1.mlp.up_proj.weight",
        "model.embed_tokens.weight",
    ],
)
def test_the_estimate_is_near_what_a_small_error_costs(backbone, statistics, name):
    weight = backbone.model.get_parameter(name)
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(2))
    error = 0.02 * weight.std() * noise
    assert 0.5 < statistics[name].loss(error) / divergence(backbone, name, error) < 2.0


def test_every_quantized_weight_is_measured_and_more_bits_cost_less(backbone, statistics):
    choices = measure(backbone, BACKEND, recipe_named("int4"), lambda: statistics, lambda *_: None)
    assert "model.embed_tokens.weight" in choices and not any("norm" in name for name in choices)
    for options in choices.values():
        by_format = {choice.format: choice for choice in options}
        five, eight = by_format["int5 symmetric g32"], by_format["int8 symmetric g32"]
        assert eight.loss < five.loss and eight.bytes > five.bytes
    assert len(list(table(choices))) > 8
    losses = [choice.loss for choice in frontier(choices, 6)]
    assert losses == sorted(losses, reverse=True)


def test_an_embedding_in_executorch_has_the_one_format_that_is_stored(backbone, statistics):
    """It is looked up in rows of 8 bits; 4 for a tied LM head are a second matrix, and count."""
    name, recipe = "model.embed_tokens.weight", recipe_named("int4")
    choices = measure(backbone, EXECUTORCH, recipe, lambda: statistics, lambda *_: None)
    assert [choice.format for choice in choices[name]] == ["int8 symmetric g32"]
    left_alone, eight, four = (
        EXECUTORCH.weights_bytes(WeightRequest(backbone.model, exact_recipe("int4", formats)))
        for formats in ({}, {name: WeightFormat(8)}, {name: WeightFormat(4)})
    )
    weight = backbone.model.get_parameter(name)
    assert eight - left_alone == choices[name][0].bytes - weight.nbytes
    assert four - eight == weight.numel() // 2 + 2 * weight.numel() // 32


def test_an_interrupted_report_resumes(backbone, statistics, tmp_path):
    """Even in the middle of a line."""
    path, subject, recipe = tmp_path / "rows.jsonl", {"model": "tiny"}, recipe_named("int4")
    rows = Rows(path, subject)
    whole = measure(backbone, BACKEND, recipe, lambda: statistics, lambda *_: None, save=rows.add)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    again = Rows(path, subject)
    assert 0 < len(again.rows) < len(rows.rows)
    new: list[dict[str, object]] = []
    resumed = measure(
        backbone,
        BACKEND,
        recipe,
        lambda: statistics,
        lambda *_: None,
        known=again.rows,
        save=new.append,
    )
    assert resumed == whole and len(new) == len(rows.rows) - len(again.rows)


def test_rows_of_another_model_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    Rows(path, {"model": "one"}).add({"weight": "w"})
    with pytest.raises(EdgeInfiniteError, match="of another model"):
        Rows(path, {"model": "other"})
    assert json.loads(path.read_text().splitlines()[1]) == {"weight": "w"}


def test_a_text_that_is_too_short_is_refused():
    def tokenizer(text: str, **_: object) -> object:
        return type("Encoding", (), {"input_ids": [1] * len(text)})

    with pytest.raises(EdgeInfiniteError, match="10 tokens"):
        calibration_texts(tokenizer, "ten tokens")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "options", "complaint"),
    [
        ("int8", {"max_mb": 1.0}, "for --quantize int4"),
        ("none", {"calibrate": "default"}, "for --quantize int4"),
        ("int4", {"max_mb": 1.0, "max_loss": 1.0}, "exclude each other"),
        ("int4", {"max_read_mb": 1.0, "max_loss": 1.0}, "goes with --max-mb"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(recipe, options, complaint):
    with pytest.raises(EdgeInfiniteError, match=complaint):
        ExportOptions("any", quantize=recipe, quantization=QuantizationOptions(**options))


def test_a_mix_is_a_recipe_of_exact_names():
    form = recipe_named("int4").format_of("a.weight")
    assert form is not None and type(form).parse(f"{form} with offsets") == form
    recipe = exact_recipe("int4", {"a.b.weight": form})
    assert recipe.format_of("a.b.weight") == form
    assert recipe.format_of("a.b.weight.c") is None and recipe.format_of("aXb.weight") is None
