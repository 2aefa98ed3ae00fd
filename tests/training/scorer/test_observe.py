"""Training observes the backbone's own attention."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.training.scorer import observe as observing
from edgeinfinite.training.scorer.observe import Observation, observe, watched_layers
from tiny import random_tokens, tiny_hybrid, tiny_llama


@pytest.fixture(params=[7, 256])
def query_chunk(request, monkeypatch):
    monkeypatch.setattr(observing, "_QUERY_CHUNK", request.param)


@pytest.mark.usefixtures("query_chunk")
def test_observed_attention_equals_that_of_later_queries():
    tokens, gap, asking = random_tokens(40), 6, 9
    seen: dict[int, Observation] = {}
    model = tiny_llama()
    observe(model, tokens, gap, asking, seen.__setitem__)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(torch.tensor([tokens]), output_attentions=True).attentions
    age = torch.arange(40)[:, None] - torch.arange(40)
    for layer, all_heads in enumerate(weights):
        late = all_heads[0].masked_fill(age < gap, 0.0).unflatten(0, (2, 2)).flatten(1, 2)
        expected = {
            "largest": late.amax(1),
            "asked": late.unflatten(1, (2, 40))[:, :, -asking:].sum((1, 2)),
        }
        for name, value in expected.items():
            torch.testing.assert_close(getattr(seen[layer], name), value, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("query_chunk")
def test_observing_does_not_change_the_output():
    """Seen at the last layer, whose keys depend on all that came before."""
    tokens = random_tokens(40)
    seen: dict[int, Observation] = {}
    model = tiny_llama()
    observe(model, tokens, 5, 5, seen.__setitem__)
    with torch.no_grad():
        cache = model(torch.tensor([tokens]), use_cache=True).past_key_values
    for layer, observation in seen.items():
        torch.testing.assert_close(observation.key, cache.layers[layer].keys[0])
        torch.testing.assert_close(observation.value, cache.layers[layer].values[0])
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.usefixtures("query_chunk")
def test_layers_with_sliding_windows_are_not_watched_and_answer_as_ever():
    tokens = random_tokens(40)
    for family in ("Gemma2", "Gemma3", "GraniteSWA"):
        seen: dict[int, Observation] = {}
        model = tiny_hybrid(family, 7)
        observe(model, tokens, 5, 5, seen.__setitem__)
        assert list(seen) == watched_layers(model) == [1, 3]
        with torch.no_grad():
            cache = model(torch.tensor([tokens]), use_cache=True).past_key_values
        for layer, observation in seen.items():
            torch.testing.assert_close(observation.value, cache.layers[layer].values[0])
