"""GGUF's architectures as data: how transformers calls the same model, its settings and tensors.

The facts are those of llama.cpp's loaders (0.3.36 of llama-cpp-python), which decide what a file
means.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgeinfinite.models.checkpoint.gguf.architecture import (
    ATTENTION,
    DENSE,
    EXPERTS,
    GEMMA_NORMS,
    HEAD_NORMS,
    LOCAL_EXPERTS,
    MLP,
    NORMS,
    QKV,
    ROPE_TENSORS,
    SHARED_EXPERT,
    GgufArchitecture,
)
from edgeinfinite.models.checkpoint.gguf.delta_rows import DELTAS
from edgeinfinite.models.checkpoint.gguf.expert_rows import SPARSE
from edgeinfinite.models.checkpoint.gguf.gemma_rows import GEMMAS
from edgeinfinite.models.checkpoint.gguf.hybrid_rows import HYBRIDS
from edgeinfinite.models.checkpoint.gguf.lfm2_rows import LFM2S

_WINDOW = {"attention.sliding_window": "llama.cpp has no window here, whatever the converter wrote"}
_LLAMA = GgufArchitecture(
    "llama",
    biases=(*QKV, "attn_output", *MLP),
    mlp_bias_setting="mlp_bias",
    pairs=True,
    own_head=True,
    rope_tensors=ROPE_TENSORS,
    unused={"tensor_data_layout": "a note about the converter's input", **_WINDOW},
)

ARCHITECTURES: Mapping[str, GgufArchitecture] = {
    **DELTAS,
    **HYBRIDS,
    **GEMMAS,
    **LFM2S,
    **SPARSE,
    "llama": _LLAMA,
    "llama with experts": GgufArchitecture(
        "mixtral",
        layer=ATTENTION | NORMS | EXPERTS,
        settings={"sliding_window": None},
        expert_names=LOCAL_EXPERTS,
        bias_setting=None,
        pairs=True,
        own_head=True,
        rope_tensors=ROPE_TENSORS,
        unused=_LLAMA.unused,
    ),
    "mistral3": GgufArchitecture(
        "mistral",
        settings={"sliding_window": None},
        bias_setting=None,
        pairs=True,
        own_head=True,
        rope_tensors=ROPE_TENSORS,
        yarn_keys=True,
    ),
    "qwen2": GgufArchitecture(
        "qwen2", biases=QKV, settings={"use_sliding_window": False}, bias_setting=None
    ),
    "qwen2moe": GgufArchitecture(
        "qwen2_moe",
        layer=ATTENTION | NORMS | EXPERTS | SHARED_EXPERT,
        biases=QKV,
        settings={"use_sliding_window": False, "norm_topk_prob": False},
        bias_setting="qkv_bias",
    ),
    "qwen3": GgufArchitecture(
        "qwen3",
        layer=DENSE | HEAD_NORMS,
        biases=QKV,
        settings={"use_sliding_window": False},
        own_head=True,
    ),
    "qwen3moe": GgufArchitecture(
        "qwen3_moe",
        layer=ATTENTION | NORMS | HEAD_NORMS | EXPERTS,
        biases=QKV,
        settings={"use_sliding_window": False, "norm_topk_prob": True},
        own_head=True,
    ),
    "gemma": GgufArchitecture("gemma", biases=QKV, norm_offset=True, own_head=True),
    "gemma2": GgufArchitecture(
        "gemma2",
        layer=ATTENTION | MLP | GEMMA_NORMS,
        biases=QKV,
        norm_offset=True,
        own_head=True,
    ),
    "gemma3": GgufArchitecture(
        "gemma3_text",
        layer=ATTENTION | MLP | GEMMA_NORMS | HEAD_NORMS,
        biases=QKV,
        norm_offset=True,
        own_head=True,
    ),
    "phi3": GgufArchitecture(
        "phi3",
        layer={
            "attn_qkv": "self_attn.qkv_proj",
            "attn_output": "self_attn.o_proj",
            "ffn_up": "mlp.gate_up_proj",
            "ffn_down": "mlp.down_proj",
            **NORMS,
        },
        settings={"sliding_window": None},
        bias_setting=None,
        partial=True,
        rope_by_factors=True,
        rope_tensors=("rope_factors",),
        unused={
            **_WINDOW,
            "attention.sliding_window_pattern": "llama.cpp has no window here",
        },
    ),
    "granite": GgufArchitecture(
        "granite",
        biases=(*QKV, "attn_output", *MLP),
        mlp_bias_setting="mlp_bias",
        pairs=True,
        own_head=True,
        rope_tensors=ROPE_TENSORS,
    ),
    "smollm3": GgufArchitecture(
        "smollm3",
        biases=QKV,
        settings={"no_rope_layer_interval": 4, "use_sliding_window": False},
        pairs=True,
        own_head=True,
    ),
    "olmo2": GgufArchitecture(
        "olmo2",
        layer={
            **ATTENTION,
            **MLP,
            **HEAD_NORMS,
            "post_attention_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        biases=QKV,
    ),
    "starcoder2": GgufArchitecture(
        "starcoder2",
        layer={**ATTENTION, **NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        biases=(*QKV, "attn_output", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"),
        needs_biases=True,
        settings={"use_bias": True, "sliding_window": None},
        epsilon="norm_epsilon",
        layer_norms=True,
        bias_setting=None,
    ),
    "nemotron": GgufArchitecture(
        "nemotron",
        layer={**ATTENTION, **NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        biases=(*QKV, "attn_output", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"),
        epsilon="norm_eps",
        layer_norms=True,
        mlp_bias_setting="mlp_bias",
        norm_offset=True,
        partial=True,
    ),
}

_NO_ROPE = "it has no rotary position embedding (RoPE)"
_RECURRENT = "it has layers that don't attend"
_DELTA_RULE = "its experts beside a gated delta rule aren't read from GGUF"
REFUSED: Mapping[str, str] = {
    "bloom": _NO_ROPE,
    "gpt2": _NO_ROPE,
    "mpt": _NO_ROPE,
    "starcoder": _NO_ROPE,
    "t5": "it is an encoder-decoder",
    "t5encoder": "it is an encoder",
    "bert": "it is an encoder",
    "nomic-bert": "it is an encoder",
    "mamba": _RECURRENT,
    "mamba2": _RECURRENT,
    "qwen3next": _DELTA_RULE,
    "qwen35moe": _DELTA_RULE,
    "falcon": "transformers' model doesn't use the attention interface",
    "stablelm": "transformers' model doesn't use the attention interface",
    "deci": "its layers differ in heads, and transformers has no such model",
    "deepseek2": "its KV cache is a latent one (MLA)",
    "minimax-m2": "its experts are chosen with biases that aren't read from GGUF",
    "clip": "it is the image part of a model; give the model's own file",
}
"""Architectures that can't be right, and why; any other is refused as not known."""
