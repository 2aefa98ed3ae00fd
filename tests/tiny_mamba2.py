"""Tiny random hybrids of Mamba-2 and attention: Granite 4 H (dense), Bamba, Falcon-H1."""

from __future__ import annotations

from typing import Any

import torch
from tiny_artifact import VOCABULARY
from transformers import (
    BambaConfig,
    BambaForCausalLM,
    FalconH1Config,
    FalconH1ForCausalLM,
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    PreTrainedModel,
)

LAYERS = (
    *("linear_attention", "linear_attention", "full_attention"),
    *("linear_attention", "full_attention", "linear_attention"),
)
HEADS, OF_KEY, OF_VALUE, GROUPS = 8, 24, 16, 2
"""Of an SSM: heads, dimensions of B and of x, heads of B and C."""

CHANNELS = HEADS * OF_VALUE + 2 * GROUPS * OF_KEY
"""Of its convolution, which has a kernel of 4."""


def tiny_granite_h(layers: tuple[str, ...] = LAYERS, **more: Any) -> PreTrainedModel:
    """Without experts and without RoPE. Float32, in evaluation mode; reads and writes bytes.

    Args:
        layers: the kinds, in order.
        more: of its configuration.
    """
    multipliers = {
        "embedding_multiplier": 6.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.3,
        "logits_scaling": 2.0,
    }
    own = {"num_local_experts": 0, "shared_intermediate_size": 96, "layer_types": list(layers)}
    config = GraniteMoeHybridConfig(**_sizes(len(layers)) | multipliers | own | more)
    return _awake(GraniteMoeHybridForCausalLM, config)


def tiny_bamba(layers: tuple[str, ...] = LAYERS) -> PreTrainedModel:
    """The same with RoPE, of half a head's dimensions."""
    attends = [index for index, kind in enumerate(layers) if kind == "full_attention"]
    config = BambaConfig(**_sizes(len(layers)), intermediate_size=96, attn_layer_indices=attends)
    return _awake(BambaForCausalLM, config)


def tiny_falcon_h1(layers: int = 2, **more: Any) -> PreTrainedModel:
    """Each layer has both, side by side."""
    multipliers = {
        "key_multiplier": 0.7,
        "lm_head_multiplier": 0.5,
        "embedding_multiplier": 3.0,
        "mlp_multipliers": [0.6, 0.4],
        "attention_in_multiplier": 0.8,
        "attention_out_multiplier": 0.7,
        "ssm_in_multiplier": 1.2,
        "ssm_out_multiplier": 0.6,
        "ssm_multipliers": [0.7, 0.5, 1.3, 0.9, 0.6],
    }
    own = {"intermediate_size": 96, "mamba_d_ssm": HEADS * OF_VALUE, **multipliers}
    config = FalconH1Config(**_sizes(layers) | own | more)
    return _awake(FalconH1ForCausalLM, config)


def _sizes(layers: int) -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "mamba_n_heads": HEADS,
        "mamba_d_head": OF_VALUE,
        "mamba_d_state": OF_KEY,
        "mamba_n_groups": GROUPS,
        "mamba_chunk_size": 16,
        "initializer_range": 0.2,
        "pad_token_id": None,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }


def _awake(kind: type[PreTrainedModel], config: Any) -> PreTrainedModel:
    """Norms that do something, and decays from fast to so slow that a text's begin still counts."""
    torch.manual_seed(0)
    model = kind(config)
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith((".D", "dt_bias", "conv1d.bias")):
            parameter.data += 0.3 * torch.randn_like(parameter)
        if name.endswith("A_log"):
            parameter.data = torch.linspace(-6.0, 1.0, len(parameter))
    return model.eval().requires_grad_(False)
