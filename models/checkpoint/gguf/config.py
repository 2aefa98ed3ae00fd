"""transformers' configuration of a GGUF file, from its header and the names of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel

from edgeinfinite.models.checkpoint.gguf.file import GgufFile, check_general, refusal
from edgeinfinite.models.checkpoint.gguf.header import Header
from edgeinfinite.models.checkpoint.gguf.rope import Rope, read_rope, rope_tensor_names

Ropes = dict[str, Rope]
"""By layer type; those of transformers' names."""

_FULL, _SLIDING, _OTHER = "full_attention", "sliding_attention", "conv"
_SOFTMAX = 1
_LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}
"""llama.cpp knows the models that scale queries by their width from the number of layers."""


def read_config(file: GgufFile) -> tuple[PretrainedConfig, Header, Ropes]:
    """The configuration, and what it came from.

    Args:
        file: open.

    Returns:
        The configuration of the architecture's model in transformers, the header, and the RoPE of
        each type of layers.

    Raises:
        EdgeInfiniteError: a key isn't known, or has a value that can't be computed; names it.
    """
    check_general(file.path, file.values)
    header = Header(file)
    row = header.row
    _check_plain(header)
    settings = _sizes(header, file)
    heads, positions = settings["num_attention_heads"], settings["max_position_embeddings"]
    head = _head(header, settings["hidden_size"], heads)
    settings |= {"head_dim": head} if row.own_head else {}
    epsilons = ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon")
    settings[row.epsilon] = header.real(epsilons[row.layer_norms])
    header.value(epsilons[not row.layer_norms], 0)  # of the other kind of norms, which it hasn't
    settings |= dict(row.settings) | _biases(header, file)
    rope = read_rope(header, head, positions, _rope_tensors(header, file))
    ropes = {_FULL: rope}
    special = _SPECIAL.get(header.architecture)
    if special is not None:
        settings |= special(header, settings, ropes)
    settings |= _experts(header, settings)
    header.check_all_used()
    model_type = settings.pop("model_type", row.model_type)
    settings = _with_rope(header, settings, ropes)
    try:
        return AutoConfig.for_model(model_type, **settings), header, ropes
    except (StrictDataclassError, ValueError, ArithmeticError) as error:
        reason = error.__cause__ or error
        raise refusal(file.path, f"its settings don't fit together: {reason}") from error


def check_frequencies(model: PreTrainedModel, ropes: Ropes) -> None:
    """Makes sure that a model turns keys as its file says.

    Raises:
        AssertionError: transformers computes other angles from the configuration.
    """
    rotary: Any = model.get_decoder().rotary_emb
    for kind, rope in ropes.items():
        start = "" if hasattr(rotary, "inv_freq") else f"{kind}_"
        found = getattr(rotary, f"{start}inv_freq", None)
        if found is None:  # no layer of this type
            continue
        scaling = getattr(rotary, f"{start}attention_scaling")
        assert np.allclose(found.numpy(), rope.frequencies(rope.short), rtol=1e-5, atol=0), kind
        assert abs(scaling - rope.attention) < 1e-5 * rope.attention, kind


def _check_plain(header: Header) -> None:
    """Settings of llama.cpp that any architecture may state."""
    header.must_be("attention.causal", True, "it attends to later tokens, so it can't generate")
    header.value("pooling_type", 0)  # of embeddings; logits don't depend on it


def _sizes(header: Header, file: GgufFile) -> dict[str, Any]:
    heads, layers = header.positive("attention.head_count"), header.positive("block_count")
    kv_heads, types = _kv_heads(header, layers, heads)
    if heads % kv_heads:
        raise header.refuse("attention.head_count_kv", f"is {kv_heads}, of {heads} heads")
    shapes = {tensor.name: tensor.shape for tensor in file.tensors}
    rows = int(shapes["token_embd.weight"][-1]) if "token_embd.weight" in shapes else 0
    vocabulary = header.positive("vocab_size", rows or file.tokens)
    if rows and vocabulary != rows:
        raise header.refuse("vocab_size", f"is {vocabulary}, token_embd.weight has {rows} rows")
    if file.tokens > vocabulary:
        raise refusal(
            file.path, f"it lists {file.tokens} tokens, token_embd.weight has {vocabulary} rows"
        )
    blocks = {name.split(".")[1] for name in shapes if name.startswith("blk.")}
    if layers > len(blocks):
        raise header.refuse("block_count", f"is {layers}, it has tensors of {len(blocks)} layers")
    return {
        "max_position_embeddings": header.positive("context_length"),
        "hidden_size": header.positive("embedding_length"),
        "num_hidden_layers": layers,
        "intermediate_size": header.positive("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": "output.weight" not in shapes,
        "bos_token_id": None,  # the tokenizer's, later
        "eos_token_id": None,
        "pad_token_id": None,
        **types,
    }


def _kv_heads(header: Header, layers: int, heads: int) -> tuple[int, dict[str, Any]]:
    """KV heads of the layers that attend, and, where others are known, the type of each layer."""
    key = "attention.head_count_kv"
    if not header.row.other_layer:
        return header.positive(key, heads), {}
    found = header.by_layer(key, layers, heads)
    counts = set(found) - {0}
    if len(counts) != 1:
        raise header.refuse(key, f"is {found}; all layers that attend must have the same, above 0")
    return counts.pop(), {"layer_types": [_FULL if count else _OTHER for count in found]}


def _head(header: Header, width: int, heads: int) -> int:
    head = header.positive("attention.key_length", max(1, width // heads))
    values = header.positive("attention.value_length", max(1, width // heads))
    if values != head:
        raise header.refuse(
            "attention.value_length", f"is {values}, keys have {head} dimensions; both must be one"
        )
    if not header.row.own_head and head * heads != width:
        raise header.refuse(
            "attention.key_length"
            if header.has("attention.key_length")
            else "attention.head_count",
            f"gives {heads} heads of {head} dimensions, the width is {width}",
        )
    return head


def _biases(header: Header, file: GgufFile) -> dict[str, bool]:
    """Which of the configuration's biases a tensor of the file needs."""
    row = header.row
    found = {
        tensor.name.split(".")[2]
        for tensor in file.tensors
        if tensor.name.startswith("blk.") and tensor.name.endswith(".bias")
    } & set(row.biases)
    settings = {}
    if row.bias_setting is not None:
        settings[row.bias_setting] = any(name.startswith("attn_") for name in found - {"attn_norm"})
    if row.mlp_bias_setting is not None:
        settings[row.mlp_bias_setting] = any(
            name.startswith("ffn_") for name in found - {"ffn_norm"}
        )
    return settings


def _rope_tensors(header: Header, file: GgufFile) -> dict[str, np.ndarray]:
    names = rope_tensor_names(header)
    return {
        tensor.name: np.asarray(tensor.data, np.float32)
        for tensor in file.tensors
        if tensor.name in names
    }


def _experts(header: Header, settings: Mapping[str, Any]) -> dict[str, Any]:
    used = header.whole("expert_used_count", 0)
    if "ffn_gate_inp" not in header.row.layer:
        return {}
    count = header.positive("expert_count")
    if not 0 < used <= count:
        raise header.refuse("expert_used_count", f"is {used}, of {count} experts")
    header.must_be("expert_gating_func", _SOFTMAX, "only softmax (1) is read")
    for key in ("expert_group_count", "expert_group_used_count"):
        if header.whole(key, 0) > 1:
            raise header.refuse(key, "isn't 1: groups of experts aren't read")
    if header.architecture == "llama":
        return {"num_local_experts": count, "num_experts_per_tok": used}
    inner = settings["intermediate_size"]
    found = {
        "num_experts": count,
        "num_experts_per_tok": used,
        "moe_intermediate_size": header.whole("expert_feed_forward_length", 0) or inner // used,
    }
    if header.architecture == "qwen2moe":
        shared = header.whole("expert_shared_feed_forward_length", 0) or inner
        found["shared_expert_intermediate_size"] = shared
    return found


def _with_rope(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    by_factors = header.row.rope_by_factors
    found = {kind: rope.parameters(by_factors=by_factors) for kind, rope in ropes.items()}
    parameters: dict[str, Any] = found if _SLIDING in ropes else found[_FULL]
    rope = ropes[_FULL]
    if header.row.partial:
        parameters["partial_rotary_factor"] = rope.share
    more = {}
    if "original_max_position_embeddings" in found[_FULL]:  # Phi-3 has it here, too
        original = found[_FULL]["original_max_position_embeddings"]
        more["original_max_position_embeddings"] = original
    return settings | more | {"rope_parameters": parameters, "rope_theta": rope.base}


def _window(
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
        "layer_types": [_SLIDING if one else _FULL for one in slides],
        "sliding_window": window or settings["max_position_embeddings"],  # which hides nothing
    }


def _query_scale(header: Header, settings: Mapping[str, Any]) -> dict[str, Any]:
    width, heads = settings["hidden_size"], settings["num_attention_heads"]
    if settings["num_hidden_layers"] == _LAYERS_OF_27B[header.architecture]:
        return {"query_pre_attn_scalar": width // heads}
    return {"query_pre_attn_scalar": settings["head_dim"]}


def _gemma2(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    rope = ropes[_FULL]
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
    window = _window(header, settings, 2, 4096)
    return found | window | _query_scale(header, settings)


def _gemma3(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    cap = header.real("final_logit_softcapping", 0.0)
    rope = ropes[_FULL]
    base = header.real("rope.freq_base_swa", 10000.0)
    scaling = header.real("rope.scaling.attn_factor", 1.0)
    ropes[_SLIDING] = replace(rope, base=base, factor=1.0, yarn=None, attention=scaling)
    window = _window(header, settings, 6)
    return (
        {"final_logit_softcapping": cap or None, "attn_logit_softcapping": None}
        | window
        | _query_scale(header, settings)
    )


def _granite(header: Header, settings: dict[str, Any], _ropes: Ropes) -> dict[str, Any]:
    head = settings["head_dim"]
    found = {
        "logits_scaling": header.real("logit_scale"),
        "residual_multiplier": header.real("residual_scale", 0.0) or 1.0,
        "embedding_multiplier": header.real("embedding_scale", 0.0) or 1.0,
        "attention_multiplier": header.real("attention.scale", 0.0) or head**-0.5,
    }
    if not found["logits_scaling"]:
        raise header.refuse("logit_scale", "is 0")
    return found


def _lfm2(header: Header, _settings: dict[str, Any], _ropes: Ropes) -> dict[str, Any]:
    header.must_be("attention.sliding_window", 0, "LFM2 without a window is read")
    kernel = header.whole("shortconv.l_cache")
    if kernel < 2:
        raise header.refuse("shortconv.l_cache", f"is {kernel}; it must be 2 or more")
    return {"conv_L_cache": kernel}


def _olmo2(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """OLMo 2, or OLMo 3, whose window says so."""
    if not header.whole("attention.sliding_window", 0):
        header.value("attention.sliding_window_pattern", 0)
        header.value("rope.freq_base_swa", 0)
        return {}
    rope = ropes[_FULL]
    header.must_be("rope.freq_base_swa", rope.base, "OLMo 3 has one base for all layers")
    ropes[_SLIDING] = replace(rope, factor=1.0, yarn=None, attention=1.0)
    return {"model_type": "olmo3"} | _window(header, settings, 4)


_SPECIAL: Mapping[str, Callable[[Header, dict[str, Any], Ropes], dict[str, Any]]] = {
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "granite": _granite,
    "lfm2": _lfm2,
    "olmo2": _olmo2,
}
