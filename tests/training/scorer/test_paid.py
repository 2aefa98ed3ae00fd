"""What later tokens pay to a cached text is the model's own attention."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.training.scorer import paid
from edgeinfinite.training.scorer.paid import largest_paid, read_text
from tiny import random_tokens, tiny_llama


@pytest.mark.parametrize("part", [1, 5, 256])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("text", [1, 30])
def test_what_is_paid_is_the_models_own_attention_and_the_cache_stays(
    monkeypatch, part, batch, text
):
    monkeypatch.setattr(paid, "_PART", part)
    model, before = tiny_llama(), random_tokens(text)
    after = [random_tokens(12, seed=1 + one) for one in range(batch)]
    cache = read_text(model, before)
    keys = [of.keys.clone() for of in cache.layers]
    found = largest_paid(model, cache, torch.tensor(after))
    assert all(torch.equal(of.keys, was) for of, was in zip(cache.layers, keys, strict=True))
    assert model.config._attn_implementation == "sdpa"
    model.set_attn_implementation("eager")
    wanted = torch.zeros(())
    for one in after:
        with torch.no_grad():
            weights = model(torch.tensor([before + one]), output_attentions=True).attentions
        of_layer = [w[0].unflatten(0, (2, 2))[..., text:, :text].amax((1, 2)) for w in weights]
        wanted = wanted.maximum(torch.stack(of_layer))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
