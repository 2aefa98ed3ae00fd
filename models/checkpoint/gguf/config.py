"""transformers' configuration of a GGUF file, from its header and the names of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel

from edgeinfinite.models.checkpoint.gguf.delta_settings import qwen3_5
from edgeinfinite.models.checkpoint.gguf.family_settings import (
    FULL,
    SLIDING,
    Ropes,
    gemma2,
    gemma3,
    gpt_oss,
    granite,
    granite_moe,
    lfm2,
    lfm2_moe,
    olmo2,
)
from edgeinfinite.models.checkpoint.gguf.file import GgufFile, check_general, refusal
from edgeinfinite.models.checkpoint.gguf.gemma_settings import gemma3n, gemma4
from edgeinfinite.models.checkpoint.gguf.header import Header
from edgeinfinite.models.checkpoint.gguf.hybrid_settings import falcon_h1, granite_hybrid
from edgeinfinite.models.checkpoint.gguf.rope import read_rope, rope_tensor_names
from edgeinfinite.models.rotary_embedding import rotary_embedding

_GATINGS = {1: "softmax", 2: "sigmoid"}


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
    ropes = {FULL: rope}
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
    rotary: Any = rotary_embedding(model.get_decoder())
    assert (rotary is None) == (not ropes)
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
    heads, layers = header.positive("attention.head_count"), header.layers
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
        "intermediate_size": _inner(header, layers),
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
    if header.row.by_layer:
        return max(1, header.by_layer(key, layers, heads)[0]), {}
    if not header.row.other_layer or header.row.types_apart:
        return header.positive(key, heads), {}
    found = header.by_layer(key, layers, heads)
    counts = set(found) - {0}
    if len(counts) != 1:
        raise header.refuse(key, f"is {found}; all layers that attend must have the same, above 0")
    return counts.pop(), {
        "layer_types": [FULL if count else header.row.other_type for count in found]
    }


def _inner(header: Header, layers: int) -> int:
    """The inner width of the MLPs, of the first layer's where they differ."""
    key = "feed_forward_length"
    return header.by_layer(key, layers)[0] if header.row.by_layer else header.positive(key)


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
    gating = header.row.gating
    header.must_be("expert_gating_func", gating, f"only {_GATINGS[gating]} ({gating}) is read")
    for key in ("expert_group_count", "expert_group_used_count"):
        if header.whole(key, 0) > 1:
            raise header.refuse(key, "isn't 1: groups of experts aren't read")
    of, chosen, width = header.row.expert_names
    found = {of: count, chosen: used}
    inner = settings["intermediate_size"]
    if width:
        found[width] = header.whole("expert_feed_forward_length", 0) or inner // used
    if header.architecture == "qwen2moe":
        shared = header.whole("expert_shared_feed_forward_length", 0) or inner
        found["shared_expert_intermediate_size"] = shared
    return found


def _with_rope(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    if not ropes:
        return settings
    by_factors = header.row.rope_by_factors
    found = {kind: rope.parameters(by_factors=by_factors) for kind, rope in ropes.items()}
    parameters: dict[str, Any] = found if SLIDING in ropes else found[FULL]
    rope = ropes[FULL]
    if header.row.partial:
        parameters["partial_rotary_factor"] = rope.share
    more = {}
    if "original_max_position_embeddings" in found[FULL]:  # Phi-3 has it here, too
        original = found[FULL]["original_max_position_embeddings"]
        more["original_max_position_embeddings"] = original
    return settings | more | {"rope_parameters": parameters, "rope_theta": rope.base}


_SPECIAL: Mapping[str, Callable[[Header, dict[str, Any], Ropes], dict[str, Any]]] = {
    "falcon-h1": falcon_h1,
    "gemma2": gemma2,
    "gemma3": gemma3,
    "gemma3n": gemma3n,
    "gemma4": gemma4,
    "gpt-oss": gpt_oss,
    "granite": granite,
    "granitehybrid": granite_hybrid,
    "granitemoe": granite_moe,
    "lfm2": lfm2,
    "lfm2moe": lfm2_moe,
    "olmo2": olmo2,
    "qwen35": qwen3_5,
}
