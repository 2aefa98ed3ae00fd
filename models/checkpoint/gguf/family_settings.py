"""What single families' configurations need, of a GGUF file's header.

Each function takes the header, the settings that were read before, and the RoPE by layer type,
which it may change. It returns further settings, and refuses by name what can't be computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgeinfinite.models.checkpoint.gguf.header import Header
from edgeinfinite.models.checkpoint.gguf.rope import Rope

Ropes = dict[str, Rope]
"""By layer type; those of transformers' names. Empty: the model has no RoPE."""

FULL, SLIDING = "full_attention", "sliding_attention"
_LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}
"""llama.cpp knows the models that scale queries by their width from the number of layers."""


def window(
    header: Header, settings: Mapping[str, Any], pattern: int, default: int = 0
) -> dict[str, Any]:
    """The sliding window and the type of each layer; a window every so many layers."""
    layers = settings["num_hidden_layers"]
    key = "attention.sliding_window_pattern"
    window = header.whole("attention.sliding_window", default)
    given = header.value(key, pattern)
    if isinstance(given, list):
        if len(given) < layers:
            raise header.refuse(key, f"has {len(given)} entries for {layers} layers")
        slides = [bool(entry) for entry in given[:layers]]
    else:
        every = header.whole(key, pattern)
        slides = [every == 0 or index % every < every - 1 for index in range(layers)]
    if not window:
        slides = [False] * layers
    return {
        "layer_types": [SLIDING if one else FULL for one in slides],
        "sliding_window": window or settings["max_position_embeddings"],  # which hides nothing
    }


def _query_scale(header: Header, settings: Mapping[str, Any]) -> dict[str, Any]:
    width, heads = settings["hidden_size"], settings["num_attention_heads"]
    if settings["num_hidden_layers"] == _LAYERS_OF_27B[header.architecture]:
        return {"query_pre_attn_scalar": width // heads}
    return {"query_pre_attn_scalar": settings["head_dim"]}


def gemma2(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Gemma 2."""
    rope = ropes[FULL]
    header.must_be("rope.freq_base_swa", rope.base, "Gemma 2 has one base for all layers")
    if header.value("rope.scaling.type", "linear") == "none":
        header.must_be(
            "rope.scaling.factor", 1.0, "of type none, it would scale every second layer"
        )
    caps = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    found: dict[str, Any] = {}
    for key, default in caps.items():
        found[key] = header.real(key, default)
        if found[key] <= 0:
            raise header.refuse(key, f"is {found[key]}; it must be more than 0")
    header.positive("attention.sliding_window", 4096)
    found |= window(header, settings, 2, 4096)
    return found | _query_scale(header, settings)


def gemma3(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Gemma 3."""
    cap = header.real("final_logit_softcapping", 0.0)
    rope = ropes[FULL]
    base = header.real("rope.freq_base_swa", 10000.0)
    scaling = header.real("rope.scaling.attn_factor", 1.0)
    ropes[SLIDING] = replace(rope, base=base, factor=1.0, yarn=None, attention=scaling)
    return (
        {"final_logit_softcapping": cap or None, "attn_logit_softcapping": None}
        | window(header, settings, 6)
        | _query_scale(header, settings)
    )


def granite(header: Header, settings: dict[str, Any], _ropes: Ropes) -> dict[str, Any]:
    """Granite's multipliers."""
    head = settings["head_dim"]
    hybrid = header.architecture == "granitehybrid"  # where the scale of logits may be absent
    found = {
        "logits_scaling": header.real("logit_scale", 0.0 if hybrid else None) or float(hybrid),
        "residual_multiplier": header.real("residual_scale", 0.0) or 1.0,
        "embedding_multiplier": header.real("embedding_scale", 0.0) or 1.0,
        "attention_multiplier": header.real("attention.scale", 0.0) or head**-0.5,
    }
    if not found["logits_scaling"]:
        raise header.refuse("logit_scale", "is 0")
    return found


def lfm2(header: Header, _settings: dict[str, Any], _ropes: Ropes) -> dict[str, Any]:
    """LFM2's convolution."""
    header.must_be("attention.sliding_window", 0, "LFM2 without a window is read")
    kernel = header.whole("shortconv.l_cache")
    if kernel < 2:
        raise header.refuse("shortconv.l_cache", f"is {kernel}; it must be 2 or more")
    return {"conv_L_cache": kernel}


def lfm2_moe(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """LFM2 with experts in all layers but the first ones."""
    dense = header.whole("leading_dense_block_count", 0)
    return lfm2(header, settings, ropes) | {"num_dense_layers": dense}


def gpt_oss(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """GPT-OSS, every second layer of which has a window."""
    base = ropes[FULL].base
    header.must_be("rope.freq_base_swa", base, "GPT-OSS with one base for all layers is read")
    header.positive("attention.sliding_window")
    return window(header, settings, 2)


def granite_moe(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Granite with experts, and with one that all tokens have or without."""
    found = granite(header, settings, ropes)
    shared = header.whole("expert_shared_feed_forward_length", 0)
    if shared:
        found |= {"model_type": "granitemoeshared", "shared_intermediate_size": shared}
    return found


def olmo2(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """OLMo 2, or OLMo 3, whose window says so."""
    if not header.whole("attention.sliding_window", 0):
        header.value("attention.sliding_window_pattern", 0)
        header.value("rope.freq_base_swa", 0)
        return {}
    rope = ropes[FULL]
    header.must_be("rope.freq_base_swa", rope.base, "OLMo 3 has one base for all layers")
    ropes[SLIDING] = replace(rope, factor=1.0, yarn=None, attention=1.0)
    return {"model_type": "olmo3"} | window(header, settings, 4)
