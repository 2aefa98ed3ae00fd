"""Tiny random backbones, for tests about behaviour rather than language."""

from __future__ import annotations

import re

import numpy as np
import torch
import transformers
from architectures import ARCHITECTURES
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import (
    NO_GATE,
    UNTRAINED_GATE,
    UNTRAINED_SCORER,
    EdgeInfiniteConfig,
)
from edgeinfinite.models.memory.gate import MemoryGate

VOCABULARY = 97


def tiny_llama(
    *,
    heads: int = 4,
    kv_heads: int = 2,
    layers: int = 2,
    seed: int = 0,
    vocabulary: int = VOCABULARY,
) -> PreTrainedModel:
    """A random Llama, large enough weights for attention to be far from uniform."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=8 * heads,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).eval()


def wide_llama(*, tied: bool = False, vocabulary: int = VOCABULARY) -> PreTrainedModel:
    """Weights of four and eight groups of 32 inputs; some channels are larger than others."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.1,
        tie_word_embeddings=tied,
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    for layer in model.model.layers:
        layer.mlp.up_proj.weight *= torch.linspace(0.2, 3.0, 256)[:, None]
        layer.input_layernorm.weight *= torch.linspace(0.2, 3.0, 128)
    return model


def attached(
    geometry: Geometry,
    *,
    gate: str = UNTRAINED_GATE,
    open_gates: bool = True,
    feature_map: str = "elu",
    opening: str = "constant",
    **shape: int,
) -> PreTrainedModel:
    """A tiny Llama with gates; opened and with large weights, so that an error in M shows."""
    scorer = UNTRAINED_SCORER if geometry.recall_slots else None
    form = {"feature_map": feature_map, "opening": opening}
    config = EdgeInfiniteConfig(geometry, gate=gate, gate_rank=8, scorer=scorer, **form)
    model = attach(tiny_llama(**shape), config)
    if open_gates and gate != NO_GATE:
        torch.manual_seed(1)
        for layer in attention_layers(model):
            open_gate(layer.memory_gate)
    return model


def open_gate(gate: MemoryGate) -> None:
    """Large random weights, also where training begins with an identity or zeros."""
    torch.nn.init.normal_(gate.g)
    torch.nn.init.normal_(gate.w1.weight)
    torch.nn.init.normal_(gate.w2.weight)
    if gate.opening != "constant":
        torch.nn.init.normal_(gate.u)
    if gate.opening == "place":
        torch.nn.init.normal_(gate.c)
    for tensor in gate.feature_map.parameters():
        torch.nn.init.normal_(tensor)


def random_tokens(count: int, seed: int = 0) -> list[int]:
    """Token ids of the tiny vocabulary."""
    return np.random.default_rng(seed).integers(3, VOCABULARY, count).tolist()


def assert_close(actual: object, expected: object, tolerance: float = 2e-5) -> None:
    """Equal up to float32 rounding, measured against the largest magnitude."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    if actual.size:
        limit = tolerance * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=limit)


_HYBRIDS: dict[str, dict[str, object]] = {
    "Gemma2": {"attn_logit_softcapping": 2.0},
    "Gemma3": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "Qwen2": {"use_sliding_window": True, "max_window_layers": 2},
    "SmolLM3": {"use_sliding_window": True, "no_rope_layers": [1, 0, 1, 0]},
    "Mistral": {},
    "Phi3": {},
    "GraniteSWA": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "attention_multiplier": 0.1,
    },
}


def tiny_hybrid(
    family: str,
    window: int,
    *,
    layers: int = 4,
    width: int = 8,
    vocabulary: int = VOCABULARY,
    positions: int = 128,
) -> PreTrainedModel:
    """A random model some of whose layers (Mistral, Phi3: all) have a sliding window.

    Args:
        family: of `_HYBRIDS`.
        window: newest tokens that a token sees there, itself included.
        layers: 2 or 4.
        width: dimensions of a head.
        vocabulary: its size.
        positions: that it knows.
    """
    name = "Gemma3Text" if family == "Gemma3" else family
    extra = {k: v[:layers] if isinstance(v, list) else v for k, v in _HYBRIDS[family].items()}
    if "max_window_layers" in extra:
        extra["max_window_layers"] = layers // 2
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=vocabulary,
        hidden_size=4 * width,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=width,
        max_position_embeddings=positions,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        sliding_window=window,
        **extra,
    )
    return _uneven(getattr(transformers, f"{family}ForCausalLM")(config).eval())


MORE_FAMILIES: dict[str, dict[str, object]] = {
    "Cohere2": {"sliding_window": 7},
    "Exaone4": {"sliding_window": 7, "sliding_window_pattern": 4},
    "Gemma": {},
    "Mixtral": {"num_local_experts": 4},
    "Qwen3Moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
}
"""Attention and MLP side by side, experts, and others that exact reading takes as they are."""


def tiny_family(name: str, **extra: object) -> PreTrainedModel:
    """A random model of any architecture, of 4 layers unless its settings say otherwise.

    Args:
        name: of `ARCHITECTURES`, of `MORE_FAMILIES`, or as transformers' classes begin.
        extra: settings that come before those of the lists.
    """
    known = ARCHITECTURES.get(name)
    family = known.family if known else name
    special = known.settings if known else MORE_FAMILIES.get(name, {})
    settings: dict[str, object] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    prefix = "Gemma3Text" if family == "Gemma3" else family
    config = getattr(transformers, f"{prefix}Config")(**(settings | special | extra))
    torch.manual_seed(0)
    return _uneven(getattr(transformers, f"{family}ForCausalLM")(config).eval())


def _uneven(model: PreTrainedModel) -> PreTrainedModel:
    """Norms after RoPE and learned sinks begin alike, which would show nothing."""
    for name, weight in model.named_parameters():
        if re.search("(key|query)_layernorm|sinks", name):
            weight.data += 0.4 * torch.randn(weight.shape)
    return model
