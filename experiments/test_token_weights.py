"""What tokens count, on a tiny model."""

from __future__ import annotations

import pytest
import torch
from token_weights import distances, predictions, weighted

from tiny import random_tokens, tiny_llama


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_a_token_counts_by_a_power_of_its_gradient(power):
    generator = torch.Generator().manual_seed(0)
    x, gradient = torch.randn(1, 20, 8, generator=generator), torch.zeros(1, 20, 8)
    gradient[0, 3], gradient[0, 7] = 2.0, 1.0
    found = torch.zeros(8, 8)
    weighted(power)(found, x, gradient)
    first, second = (torch.outer(x[0, t], x[0, t]) for t in (3, 7))
    expected = 20 * (2**power * first + second) / (2**power + 1)
    if power == 0.0:
        expected = x[0].T @ x[0]
    torch.testing.assert_close(found, expected)


def test_a_model_is_at_no_distance_from_itself_and_at_one_from_another():
    model = tiny_llama().requires_grad_(False)
    texts = [random_tokens(30, seed) for seed in range(2)]
    expected = [predictions(model, text) for text in texts]
    assert distances(model, texts, expected)["kl"] == 0.0
    model.lm_head.weight.mul_(1.5)
    moved = distances(model, texts, expected)
    assert moved["kl"] > 0.0 and moved["nats"] != 0.0
