"""Tiny random Gemma 3n and 4: the last layers read what earlier ones have cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tiny_artifact import VOCABULARY
from transformers import (
    Gemma3nForCausalLM,
    Gemma3nTextConfig,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    Gemma4UnifiedForCausalLM,
    Gemma4UnifiedTextConfig,
    PreTrainedModel,
)

WINDOW = 7
_S, _F = "sliding_attention", "full_attention"
LAYERS = [_S, _F, _S, _S, _F, _S, _F]
OWN = 4
"""The first layers; of those after them two read the fourth's cache, and one the second's."""

FEW = {"num_hidden_layers": 4, "layer_types": [_S, _F, _S, _F], "num_kv_shared_layers": 2}
"""Layers of which the last two read the caches of the first two."""

_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size": 64,
    "hidden_size_per_layer_input": 32,
    "num_hidden_layers": len(LAYERS),
    "layer_types": LAYERS,
    "num_kv_shared_layers": len(LAYERS) - OWN,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "sliding_window": WINDOW,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
    "pad_token_id": None,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
_OF_4 = {
    "global_head_dim": 32,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "final_logit_softcapping": 30.0,
}


def tiny_gemma3n(**layers: Any) -> PreTrainedModel:
    """Embeddings by layer, AltUp, Laurel, and MLPs of which some layers' are sparse."""
    sizes = _SIZES | layers
    count = sizes["num_hidden_layers"]
    sparse = [0.9, 0.0, 0.5, *[0.0] * (count - 3)]
    wide = {"intermediate_size": [96] * count, "activation_sparsity_pattern": sparse}
    config = Gemma3nTextConfig(**sizes | wide, altup_num_inputs=3, laurel_rank=8)
    return _made(Gemma3nForCausalLM, config)


def tiny_gemma4(**layers: Any) -> PreTrainedModel:
    """Embeddings by layer; layers that see everything have other heads, and RoPE in a quarter."""
    sizes = _SIZES | _OF_4 | layers
    return _made(Gemma4ForCausalLM, Gemma4TextConfig(**sizes, use_double_wide_mlp=True))


def tiny_gemma4_unified() -> PreTrainedModel:
    """Without embeddings by layer."""
    sizes = {name: size for name, size in _SIZES.items() if not name.endswith("_per_layer_input")}
    return _made(Gemma4UnifiedForCausalLM, Gemma4UnifiedTextConfig(**sizes, **_OF_4))


MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "gemma3n": tiny_gemma3n,
    "gemma4": tiny_gemma4,
    "gemma4_unified": tiny_gemma4_unified,
}
SMALL: dict[str, Callable[[], PreTrainedModel]] = {
    "small gemma3n": lambda: tiny_gemma3n(**FEW),
    "small gemma4": lambda: tiny_gemma4(**FEW),
}


def _made(kind: Any, config: Any) -> PreTrainedModel:
    """Float32, in evaluation mode, with norms and scales that do something."""
    torch.manual_seed(0)
    model = kind(config).eval().requires_grad_(False)
    for name, tensor in model.state_dict().items():
        if "norm" in name or "scalar" in name:
            tensor += 0.2 * torch.randn_like(tensor)
    return model
