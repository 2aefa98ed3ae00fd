"""The comparison of quantizers, on a tiny model."""

from __future__ import annotations

import pytest
import torch
from quantizers import GROUP, METHODS, Shared

from tiny import random_tokens, tiny_family

HERE = [name for name in METHODS if name not in ("llmcompressor-gptq", "autoround")]
"""The methods of libraries that the project needs anyway."""


@pytest.fixture(scope="module")
def shared() -> Shared:
    sizes = {"hidden_size": 64, "head_dim": 16, "intermediate_size": 128, "num_hidden_layers": 1}
    model = tiny_family("Llama", **sizes).requires_grad_(False)
    return Shared(model, [random_tokens(50, seed) for seed in range(8)])


@pytest.mark.parametrize("method", HERE)
def test_every_method_leaves_16_values_a_group_near_the_weights_and_restores_them(shared, method):
    floats = {name: linear.weight.clone() for name, linear in shared.linears()}
    tokens = torch.tensor([random_tokens(30)])
    expected = shared.model(tokens).logits
    changed = METHODS[method](shared, None)
    for name, linear in changed.named_modules():
        if name in floats:
            groups = linear.weight.reshape(-1, GROUP)
            steps = [len({round(float(v), 5) for v in group}) for group in groups]
            assert max(steps) <= 16, name
            if "awq" not in method:
                error = (linear.weight - floats[name]).norm() / floats[name].norm()
                assert error < 0.2, name
    assert not torch.equal(changed(tokens).logits, expected)
    shared.restore()
    assert torch.equal(shared.model(tokens).logits, expected)
