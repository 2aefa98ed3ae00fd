"""The fixture itself: another order of the channels, the same function."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.export.onnx.quantize import quantize
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone
from edgeinfinite.models.recall.scorer_file import (
    load_scorers,
    save_scorers,
    untrained_scorers,
)
from permuted import permuted, write_permuted_scorer
from tiny import VOCABULARY, tiny_llama


def logits(model: PreTrainedModel, vocabulary: int) -> torch.Tensor:
    tokens = torch.randint(0, vocabulary, (1, 48), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model(input_ids=tokens).logits


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / other.norm())


def test_a_permuted_model_computes_the_same():
    model = tiny_llama()
    twin = permuted(model)
    assert not torch.equal(twin.model.embed_tokens.weight, model.model.embed_tokens.weight)
    assert difference(logits(twin, VOCABULARY), logits(model, VOCABULARY)) < 1e-5


def test_a_permuted_scorer_gives_a_permuted_pair_the_same_score(tmp_path):
    model = tiny_llama()
    twin, config = permuted(model), model.config
    kv_heads, size = config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    source, target = tmp_path / "source.safetensors", tmp_path / "target.safetensors"
    scorers = untrained_scorers(config.num_hidden_layers, kv_heads, size, 0)
    for scorer in scorers:
        scorer.mean.normal_()
        scorer.deviation.uniform_(0.5, 2.0)
    save_scorers(source, scorers, RankRule(), {})
    write_permuted_scorer(source, target, model)
    theirs = load_scorers(target, config.num_hidden_layers, kv_heads, size)
    key, x = torch.randn(kv_heads, 5, size), torch.randn(5, config.hidden_size)
    order = _residual_order(model, twin)

    def scores(scorer, layer, inputs):
        value = layer.self_attn.v_proj(inputs).view(5, kv_heads, size).transpose(0, 1)
        return scorer(key, value)

    for one, other, ours, its in zip(
        scorers, theirs, model.model.layers, twin.model.layers, strict=True
    ):
        torch.testing.assert_close(scores(other, its, x[:, order]), scores(one, ours, x))


def _residual_order(model: PreTrainedModel, twin: PreTrainedModel) -> torch.Tensor:
    """For each channel of the twin that of the model, found by its column in the embedding."""
    one, other = model.model.embed_tokens.weight, twin.model.embed_tokens.weight
    return torch.cdist(other.T, one.T).argmin(1)


@pytest.mark.slow
def test_the_permuted_demo_model_computes_the_same_and_is_no_longer_on_the_files_grid():
    model = load_backbone(DEMO_MODEL).model
    twin = permuted(model)
    assert difference(logits(twin, 49152), logits(model, 49152)) < 1e-5
    form = WeightFormat(4, symmetric=False)
    name = "model.layers.7.mlp.up_proj.weight"
    for subject, offsets in ((model, True), (twin, False)):
        weight = subject.get_parameter(name)
        assert (quantize(weight, form, offsets=True).offsets is not None) == offsets
