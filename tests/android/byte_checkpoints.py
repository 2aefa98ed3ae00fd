"""Tiny random checkpoints over bytes, one of each kind of layers that the Kotlin runtime runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from byte_tokenizer import byte_tokenizer
from templates import CHATML
from transformers import (
    FalconH1Config,
    FalconH1ForCausalLM,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_checkpoint(folder: Path, kind: str = "plain") -> Path:
    """A random Llama that reads and writes bytes, a Qwen2 whose second layer slides, an LFM2, a
    Qwen3.5, a Falcon-H1, a Gemma 4 or a GPT-OSS; the same one whenever it is made.
    """
    tokenizer = byte_tokenizer(SPECIAL, begin=SPECIAL[1], end=SPECIAL[2], template=CHATML)
    tokenizer.save_pretrained(folder)
    words = len(tokenizer)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": words,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if kind == "sliding":
        slides = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
        Qwen2ForCausalLM(Qwen2Config(**sizes, **slides)).save_pretrained(folder)
    elif kind == "states":
        types = ["conv", "full_attention", "conv"]
        sizes |= {"num_hidden_layers": 3, "layer_types": types, "block_auto_adjust_ff_dim": False}
        Lfm2ForCausalLM(Lfm2Config(**sizes)).save_pretrained(folder)
    elif kind == "delta":
        types = ["linear_attention", "full_attention", "linear_attention"]
        sizes |= {"num_hidden_layers": 3, "layer_types": types, "head_dim": 32}
        of_rule = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
        of_head = {"linear_key_head_dim": 16, "linear_value_head_dim": 24}
        config = Qwen3_5TextConfig(**sizes, **of_rule, **of_head)
        Qwen3_5ForCausalLM(config).save_pretrained(folder)
    elif kind == "ssm":
        of_ssm = {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_state": 16, "mamba_n_groups": 2}
        FalconH1ForCausalLM(FalconH1Config(**sizes, **of_ssm)).save_pretrained(folder)
    elif kind == "shared":
        types = ["sliding_attention", "full_attention"] * 2
        sizes |= {"num_hidden_layers": 4, "layer_types": types, "num_kv_shared_layers": 2}
        sizes |= {"head_dim": 16, "global_head_dim": 32, "sliding_window": 6}
        sizes |= {"num_global_key_value_heads": 1, "attention_k_eq_v": True}
        of_layers = {
            "hidden_size_per_layer_input": 32,
            "vocab_size_per_layer_input": words,
        }
        config = Gemma4TextConfig(**sizes, **of_layers)
        Gemma4ForCausalLM(config).save_pretrained(folder)
    elif kind == "experts":
        chosen = {"num_local_experts": 6, "num_experts_per_tok": 2, "head_dim": 16}
        types = ["sliding_attention", "full_attention"]
        rope = {"rope_type": "default", "rope_theta": 10_000.0}
        slides = {"sliding_window": 6, "layer_types": types, "rope_parameters": rope}
        GptOssForCausalLM(GptOssConfig(**sizes, **chosen, **slides)).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(folder)
    return folder
