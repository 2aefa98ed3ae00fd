"""A tiny random LFM2: short convolutions between two layers that attend."""

from __future__ import annotations

import torch
from tiny_artifact import VOCABULARY
from transformers import Lfm2Config, Lfm2ForCausalLM

LAYERS = ("conv", "conv", "full_attention", "conv", "full_attention", "conv")


def tiny_lfm2(layers: tuple[str, ...] = LAYERS, positions: int = 4096) -> Lfm2ForCausalLM:
    """Float32, in evaluation mode; reads and writes bytes, as the tiny tokenizer has them."""
    torch.manual_seed(0)
    config = Lfm2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=len(layers),
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        layer_types=list(layers),
        block_auto_adjust_ff_dim=False,
        conv_L_cache=3,
        initializer_range=0.2,
        pad_token_id=None,
        bos_token_id=0,
        eos_token_id=1,
    )
    return Lfm2ForCausalLM(config).eval().requires_grad_(False)
