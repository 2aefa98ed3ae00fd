"""The header of a GGUF file, of a checkpoint's configuration; see `shape_gguf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gguf import GGUFValueType, GGUFWriter
from transformers import PretrainedConfig

FREQUENCIES = "rope_freqs"
"""A tensor without a parameter: what each angle of Gemma 4's full layers is divided by."""
_NEVER = 1e30
_FULL, _SLIDING = "full_attention", "sliding_attention"


def add_keys(writer: GGUFWriter, config: PretrainedConfig, inner: int) -> None:
    """Adds a file's header.

    Args:
        writer: of the file.
        config: of its model.
        inner: width of the first layer's MLP, as its weights have it.
    """
    architecture, others = FAMILIES[config.model_type]
    keys: dict[str, Any] = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": inner,
        "vocab_size": config.vocab_size,
        "attention.head_count": config.num_attention_heads,
        **others(config),
    }
    kinds = {bool: "BOOL", int: "UINT32", float: "FLOAT32", list: "ARRAY"}
    for name, value in keys.items():
        kind = GGUFValueType[kinds[type(value)]]
        writer.add_key_value(f"{architecture}.{name}", value, kind)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    words = ["a", "b", "ab", *(f"<{index}>" for index in range(3, config.vocab_size))]
    writer.add_token_list(words)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(config.bos_token_id or 0)
    writer.add_eos_token_id(config.eos_token_id or 0)


def divisors(config: PretrainedConfig) -> np.ndarray:
    """Of the angles of Gemma 4's full layers, `[D / 2]` float32: the last ones never turn."""
    _, head = _by_kind(config)[_FULL]
    share = config.rope_parameters[_FULL]["partial_rotary_factor"]
    found = np.full(head // 2, _NEVER, np.float32)
    found[: int(share * head // 2)] = 1
    return found


def _lfm2(config: PretrainedConfig) -> dict[str, Any]:
    return {
        "attention.head_count_kv": _heads(config),
        "attention.layer_norm_rms_epsilon": config.norm_eps,
        "rope.freq_base": config.rope_parameters["rope_theta"],
        "shortconv.l_cache": config.conv_L_cache,
    }


def _qwen3_5(config: PretrainedConfig) -> dict[str, Any]:
    rope = config.rope_parameters
    return {
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.recurrent_layers": [kind != _FULL for kind in config.layer_types],
        "full_attention_interval": 1 + config.layer_types.index(_FULL),
        "rope.freq_base": rope["rope_theta"],
        "rope.dimension_count": int(config.head_dim * rope["partial_rotary_factor"]),
        "rope.dimension_sections": [*rope.get("mrope_section", (11, 11, 10)), 0],
        "ssm.conv_kernel": config.linear_conv_kernel_dim,
        "ssm.state_size": config.linear_key_head_dim,
        "ssm.group_count": config.linear_num_key_heads,
        "ssm.time_step_rank": config.linear_num_value_heads,
        "ssm.inner_size": config.linear_num_value_heads * config.linear_value_head_dim,
    }


def _granite(config: PretrainedConfig) -> dict[str, Any]:
    return {
        "attention.head_count_kv": _heads(config),
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.scale": float(config.attention_multiplier),
        "embedding_scale": float(config.embedding_multiplier),
        "logit_scale": float(config.logits_scaling),
        "residual_scale": float(config.residual_multiplier),
        "rope.scaling.finetuned": config.position_embedding_type == "rope",
        "rope.freq_base": config.rope_parameters["rope_theta"],
        "ssm.conv_kernel": config.mamba_d_conv,
        "ssm.state_size": config.mamba_d_state,
        "ssm.group_count": config.mamba_n_groups,
        "ssm.time_step_rank": config.mamba_n_heads,
        "ssm.inner_size": config.mamba_n_heads * config.mamba_d_head,
    }


def _gemma4(config: PretrainedConfig) -> dict[str, Any]:
    layers, shared = config.num_hidden_layers, config.num_kv_shared_layers
    inner, kinds = config.intermediate_size, _by_kind(config)
    wide = inner * (2 if config.use_double_wide_mlp else 1)
    sliding, full = kinds[_SLIDING][1], kinds[_FULL][1]
    return {
        "feed_forward_length": [inner] * (layers - shared) + [wide] * shared,
        "attention.head_count_kv": [kinds[kind][0] for kind in config.layer_types],
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.key_length": full,
        "attention.value_length": full,
        "attention.key_length_swa": sliding,
        "attention.value_length_swa": sliding,
        "attention.sliding_window": config.sliding_window,
        "attention.sliding_window_pattern": [kind == _SLIDING for kind in config.layer_types],
        "attention.shared_kv_layers": shared,
        "embedding_length_per_layer_input": config.hidden_size_per_layer_input,
        "final_logit_softcapping": float(config.final_logit_softcapping),
        "rope.freq_base": config.rope_parameters[_FULL]["rope_theta"],
        "rope.freq_base_swa": config.rope_parameters[_SLIDING]["rope_theta"],
        "rope.dimension_count": full,
        "rope.dimension_count_swa": sliding,
    }


def _by_kind(config: PretrainedConfig) -> dict[str, tuple[int, int]]:
    """KV heads and dimensions of a head in Gemma 4's sliding and full layers."""
    return {
        kind: (layer.num_key_value_heads, layer.head_dim)
        for kind, layer in zip(config.layer_types, config.per_layer_config, strict=True)
    }


def _heads(config: PretrainedConfig) -> list[int]:
    """KV heads of each layer; one that doesn't attend has none."""
    return [config.num_key_value_heads * (kind == _FULL) for kind in config.layer_types]


FAMILIES: dict[str, tuple[str, Callable[[PretrainedConfig], dict[str, Any]]]] = {
    "lfm2": ("lfm2", _lfm2),
    "qwen3_5_text": ("qwen35", _qwen3_5),
    "granitemoehybrid": ("granitehybrid", _granite),
    "gemma4_text": ("gemma4", _gemma4),
}
"""By transformers' model type: GGUF's architecture, and its keys beside those that all have."""
