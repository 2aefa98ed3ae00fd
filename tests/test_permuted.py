"""The fixture itself: another order of the channels, the same function."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedModel

from edgeinfinite.export.onnx.quantize import quantize
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.models.loading import DEMO_MODEL, load_backbone
from permuted import permuted
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
