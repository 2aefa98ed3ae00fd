"""Which layer reads attention's result is measured, whatever its name and place."""

from __future__ import annotations

import pytest
from tiny_mamba2 import tiny_falcon_h1
from torch import nn

from edgeinfinite.models.attention.readers import layers_by_input, readers_of_attention
from tiny import tiny_family, tiny_llama


@pytest.mark.parametrize(
    ("family", "reader"),
    [("Llama 3", "o_proj"), ("Phi-3", "o_proj"), ("Phi", "dense"), ("Cohere", "o_proj")],
)
def test_the_reader_of_attention_is_found_in_every_layer(family: str, reader: str) -> None:
    """Phi-3 lists it before the projection of Q, K and V; Cohere computes its MLP beside it."""
    model = tiny_family(family)
    layers = len(model.get_decoder().layers)
    expected = {f"model.layers.{index}.self_attn.{reader}" for index in range(layers)}
    assert readers_of_attention(model) == expected


def test_layers_over_one_input_are_listed_as_they_are_called() -> None:
    """As a graph has them: Falcon-H1 calls `up_proj` first."""
    groups = layers_by_input(tiny_falcon_h1())
    mlp = "model.layers.1.feed_forward."
    assert groups[f"{mlp}gate_proj"] == [f"{mlp}up_proj", f"{mlp}gate_proj"]
    assert groups["model.layers.1.mamba.in_proj"] == ["model.layers.1.mamba.in_proj"]


@pytest.mark.parametrize("multiplier", [1.0, 0.7])
def test_layers_over_equal_inputs_are_listed_together(multiplier: float) -> None:
    """A graph computes them once, and joins the layers over them: Falcon-H1's from GGUF."""
    model = tiny_falcon_h1(ssm_in_multiplier=multiplier, attention_in_multiplier=multiplier)
    layer = "model.layers.1."
    names = ("mamba.in_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    assert layers_by_input(model)[f"{layer}mamba.in_proj"] == [layer + name for name in names]


def test_a_gate_on_attention_does_not_hide_its_reader() -> None:
    class Gated(nn.Linear):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return super().forward(x * 0.5)

    model = tiny_llama()
    attention = model.get_decoder().layers[0].self_attn
    own = attention.o_proj
    attention.o_proj = Gated(own.in_features, own.out_features, bias=False)
    assert "model.layers.0.self_attn.o_proj" in readers_of_attention(model)
