"""GGUF's architecture with gated delta rules: Qwen3.5.

A delta rule's R value heads of each of K key heads stand one after the other in transformers; in a
file all key heads' first ones come first, then their second ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from transformers import PretrainedConfig

from edgeinfinite.models.checkpoint.gguf.architecture import (
    ATTENTION,
    HEAD_NORMS,
    MLP,
    QKV,
    GgufArchitecture,
)
from edgeinfinite.models.checkpoint.gguf.places import LOG_OF_MINUS, To


def _heads(config: PretrainedConfig) -> np.ndarray:
    """For each of transformers' value heads, which of the file's it is."""
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    return np.arange(values).reshape(values // keys, keys).T.reshape(-1)


def _values(config: PretrainedConfig) -> np.ndarray:
    """The same of value heads' channels."""
    size = config.linear_value_head_dim
    return (_heads(config)[:, None] * size + np.arange(size)).reshape(-1)


def _mixed(config: PretrainedConfig) -> np.ndarray:
    """The same of all channels that are convolved: queries, keys, values."""
    others = 2 * config.linear_num_key_heads * config.linear_key_head_dim
    return np.concatenate([np.arange(others), others + _values(config)])


_NORMS = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm"}
_DELTA_RULE: dict[str, str | To] = {
    "attn_qkv.weight": To("linear_attn.in_proj_qkv.weight", order=_mixed),
    "attn_gate.weight": To("linear_attn.in_proj_z.weight", order=_values),
    "ssm_alpha.weight": To("linear_attn.in_proj_a.weight", order=_heads),
    "ssm_beta.weight": To("linear_attn.in_proj_b.weight", order=_heads),
    "ssm_conv1d.weight": To("linear_attn.conv1d.weight", order=_mixed),
    "ssm_dt.bias": To("linear_attn.dt_bias", order=_heads),
    "ssm_a": To("linear_attn.A_log", turn=LOG_OF_MINUS, order=_heads),
    "ssm_norm.weight": To("linear_attn.norm.weight", offset=False),
    "ssm_out.weight": To("linear_attn.out_proj.weight", order=_values, axis=1),
}
_PREDICTING = ("eh_proj", "enorm", "hnorm", "embed_tokens", "shared_head_head", "shared_head_norm")

DELTAS: Mapping[str, GgufArchitecture] = {
    "qwen35": GgufArchitecture(
        "qwen3_5_text",
        layer=ATTENTION | HEAD_NORMS | MLP | _NORMS,
        other_layer=_DELTA_RULE | MLP | _NORMS,
        other_type="linear_attention",
        types_apart=True,
        predicting=tuple(f"nextn.{name}.weight" for name in _PREDICTING),
        biases=QKV,
        norm_offset=True,
        own_head=True,
        partial=True,
        sections=True,
    ),
}
