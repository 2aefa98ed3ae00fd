"""Facts about an architecture, and models refused because of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import nn

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture, LayerFacts, architecture_of
from tiny import tiny_llama

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FULL, WINDOW = LayerFacts(), LayerFacts(sliding_window=7)
WITHOUT_ROPE = LayerFacts(rotary=False)
FAMILIES: dict[str, tuple[dict[str, Any], list[LayerFacts]]] = {
    "Llama": ({}, [FULL] * 4),
    "Mistral": ({"sliding_window": 7}, [WINDOW] * 4),
    "Qwen2": (
        {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2},
        [FULL, FULL, WINDOW, WINDOW],
    ),
    "Gemma2": (
        {"sliding_window": 7, "head_dim": 8, "attn_logit_softcapping": 2.0},
        [LayerFacts(7, 2.0), LayerFacts(softcap=2.0)] * 2,
    ),
    "GraniteSWA": (
        {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"] * 2},
        [LayerFacts(7, sinks=True), LayerFacts(sinks=True)] * 2,
    ),
    "SmolLM3": ({}, [FULL, FULL, FULL, WITHOUT_ROPE]),
    "Cohere2": ({"sliding_window": 7}, [WINDOW, WINDOW, WINDOW, WITHOUT_ROPE]),
    "Exaone4": (
        {"sliding_window": 7, "sliding_window_pattern": 4},
        [WINDOW, WINDOW, WINDOW, WITHOUT_ROPE],
    ),
}


def family(name: str, **extra: object) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**(SIZES | extra))
    return getattr(transformers, f"{name}ForCausalLM")(config)


@pytest.mark.parametrize("name", FAMILIES)
def test_facts_are_collected_for_every_layer(name: str) -> None:
    extra, layers = FAMILIES[name]
    expected = Architecture(f"{name}ForCausalLM", tuple(layers), 4, 2, 8, 97, 128)
    assert architecture_of(family(name, **extra)) == expected


def test_angles_by_type_of_layer_are_a_fact() -> None:
    config = transformers.Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=7)
    facts = architecture_of(transformers.Gemma3ForCausalLM(config))
    assert facts.rotary_by_type and facts.head_dim == 16 and max(facts.sliding_windows) == 7


def test_half_precision_and_weights_of_any_size_make_no_difference() -> None:
    model = family("SmolLM3", initializer_range=3.0).bfloat16()
    assert [facts.rotary for facts in architecture_of(model).layers] == [True, True, True, False]


def test_collecting_facts_changes_neither_the_model_nor_the_random_state() -> None:
    model = tiny_llama().train()
    implementation = model.config._attn_implementation
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    facts = architecture_of(model)
    assert torch.equal(torch.rand(4), expected)
    assert model.training and all(module.training for module in model.modules())
    assert model.config._attn_implementation == implementation
    assert architecture_of(model) is facts


def test_a_model_that_drops_attention_arguments_is_refused() -> None:
    with pytest.raises(EdgeInfiniteError, match=r"Nemotron\w+ isn't supported: .*interface"):
        architecture_of(family("Nemotron"))


def test_layers_may_differ_in_kv_heads_but_keys_and_values_may_not() -> None:
    model = tiny_llama()
    attention = model.get_decoder().layers[1].self_attn
    attention.k_proj, attention.v_proj = (nn.Linear(32, 32, bias=False) for _ in range(2))
    attention.num_key_value_groups = 1
    facts = architecture_of(model)
    assert facts.heads == ((2, 8), (4, 8)) and facts.kv_heads == 4
    other = tiny_llama()
    attention = other.get_decoder().layers[1].self_attn
    attention.v_proj = nn.Linear(32, 32, bias=False)
    with pytest.raises(EdgeInfiniteError, match="keys and values differ in heads"):
        architecture_of(other)
