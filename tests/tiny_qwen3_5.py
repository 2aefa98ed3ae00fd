"""Tiny random Qwen3.5 and dense Qwen3-Next: gated delta rules between layers that attend."""

from __future__ import annotations

import torch
from tiny_artifact import VOCABULARY
from transformers import (
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

LAYERS = (
    *("linear_attention", "linear_attention", "full_attention"),
    *("linear_attention", "full_attention", "linear_attention"),
)
DELTA = LAYERS.count("linear_attention")


def tiny_qwen3_5(
    layers: tuple[str, ...] = LAYERS, positions: int = 4096, value_heads: int = 4, **more: int
) -> PreTrainedModel:
    """Float32, in evaluation mode; reads and writes bytes, as the tiny tokenizer has them.

    Args:
        layers: the kinds, in order.
        positions: that it says it was trained on.
        value_heads: of the delta rule; it has two heads of keys.
        more: of its configuration.
    """
    torch.manual_seed(0)
    sizes = _sizes(layers, positions, value_heads) | more
    return _awake(Qwen3_5ForCausalLM(Qwen3_5TextConfig(**sizes)))


def tiny_qwen3_next(layers: tuple[str, ...] = LAYERS) -> PreTrainedModel:
    """The same without experts, which its configuration allows."""
    torch.manual_seed(0)
    dense = list(range(len(layers)))
    config = Qwen3NextConfig(**_sizes(layers, 4096, 4), mlp_only_layers=dense)
    return _awake(Qwen3NextForCausalLM(config))


def _sizes(layers: tuple[str, ...], positions: int, value_heads: int) -> dict[str, object]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": len(layers),
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": positions,
        "layer_types": list(layers),
        "linear_num_key_heads": 2,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "initializer_range": 0.2,
        "pad_token_id": None,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }


def _awake(model: PreTrainedModel) -> PreTrainedModel:
    """Norms that do something, and decays from fast to so slow that a text's begin still counts."""
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
        if name.endswith("A_log"):
            parameter.data = torch.linspace(-6.0, 1.0, len(parameter))
    return model.eval().requires_grad_(False)
