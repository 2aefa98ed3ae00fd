"""GGUF's architectures as data: how transformers calls the same model, its settings and tensors.

The facts are those of llama.cpp's loaders (0.3.36 of llama-cpp-python), which decide what a file
means. `{i}` is the layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from edgeinfinite.models.checkpoint.gguf.places import Part, To


def _experts(module: str) -> dict[str, To]:
    """Those of all experts of a layer, whose gates and values transformers has in one parameter."""
    return {
        "ffn_gate_exps.weight": To(f"{module}.gate_up_proj", Part(0, axis=1)),
        "ffn_up_exps.weight": To(f"{module}.gate_up_proj", Part(1, axis=1)),
        "ffn_down_exps.weight": To(f"{module}.down_proj"),
    }


_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_MLP = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_GEMMA_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_EXPERTS = {
    "ffn_gate_inp": "mlp.gate",
    **_experts("mlp.experts"),
}
_SHARED_EXPERT = {
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
}
_DENSE = _ATTENTION | _MLP | _NORMS
_LFM2_BOTH = {
    "attn_norm": "operator_norm",
    "ffn_norm": "ffn_norm",
    "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3",
    "ffn_down": "feed_forward.w2",
}
_QKV = ("attn_q", "attn_k", "attn_v")
_ROPE_TENSORS = ("rope_freqs", "rope_factors")


@dataclass(frozen=True)
class GgufArchitecture:
    """One architecture.

    Args:
        model_type: of transformers' configuration.
        layer: tensors of a layer, without `blk.{i}.` and suffix, to modules of transformers'; the
            whole name of a tensor to what is no module's weight as it is.
        other_layer: those of a layer that doesn't attend, which has no KV heads in the header;
            none: every layer attends.
        last_norm: the tensor of the last norm, and its module.
        biases: those of `layer` that may have a bias, each in any layer or none.
        needs_biases: all of `biases`, and of the norms, must be there.
        settings: what transformers' configuration needs beside the header.
        epsilon: the configuration's name for the norms' epsilon, which is a header's
            `attention.layer_norm_rms_epsilon`, or `layer_norm_epsilon` if `layer_norms`.
        layer_norms: the norms are LayerNorm, not RMSNorm.
        bias_setting: of the configuration, on if there is a bias of q, k, v or the output.
        mlp_bias_setting: the same of the MLP.
        pairs: RoPE turns neighbouring dimensions, so the rows of Q and K are in another order.
        norm_offset: the file's norms are transformers' plus one.
        partial: RoPE may turn a part of a head.
        rope_by_factors: transformers' configuration knows scaled RoPE as `longrope` only.
        own_head: the size of a head may differ from the width divided by the heads.
        rope_tensors: which of `rope_freqs` (not with LongRoPE) and `rope_factors` it reads.
        yarn_keys: the header's settings of YaRN are read, not only its factor.
        unused: keys that llama.cpp doesn't use for it, though they may stand in files, and why.
    """

    model_type: str
    layer: Mapping[str, str | To] = field(default_factory=lambda: MappingProxyType(_DENSE))
    other_layer: Mapping[str, str | To] = field(default_factory=dict)
    last_norm: tuple[str, str] = ("output_norm", "model.norm")
    biases: tuple[str, ...] = ()
    needs_biases: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    epsilon: str = "rms_norm_eps"
    layer_norms: bool = False
    bias_setting: str | None = "attention_bias"
    mlp_bias_setting: str | None = None
    pairs: bool = False
    norm_offset: bool = False
    partial: bool = False
    rope_by_factors: bool = False
    own_head: bool = False
    rope_tensors: tuple[str, ...] = ()
    yarn_keys: bool = False
    unused: Mapping[str, str] = field(default_factory=dict)


_WINDOW = {"attention.sliding_window": "llama.cpp has no window here, whatever the converter wrote"}
_LLAMA = GgufArchitecture(
    "llama",
    biases=(*_QKV, "attn_output", *_MLP),
    mlp_bias_setting="mlp_bias",
    pairs=True,
    own_head=True,
    rope_tensors=_ROPE_TENSORS,
    unused={"tensor_data_layout": "a note about the converter's input", **_WINDOW},
)

ARCHITECTURES: Mapping[str, GgufArchitecture] = {
    "llama": _LLAMA,
    "llama with experts": GgufArchitecture(
        "mixtral",
        layer=_ATTENTION | _NORMS | _EXPERTS,
        settings={"sliding_window": None},
        bias_setting=None,
        pairs=True,
        own_head=True,
        rope_tensors=_ROPE_TENSORS,
        unused=_LLAMA.unused,
    ),
    "mistral3": GgufArchitecture(
        "mistral",
        settings={"sliding_window": None},
        bias_setting=None,
        pairs=True,
        own_head=True,
        rope_tensors=_ROPE_TENSORS,
        yarn_keys=True,
    ),
    "qwen2": GgufArchitecture(
        "qwen2", biases=_QKV, settings={"use_sliding_window": False}, bias_setting=None
    ),
    "qwen2moe": GgufArchitecture(
        "qwen2_moe",
        layer=_ATTENTION | _NORMS | _EXPERTS | _SHARED_EXPERT,
        biases=_QKV,
        settings={"use_sliding_window": False, "norm_topk_prob": False},
        bias_setting="qkv_bias",
    ),
    "qwen3": GgufArchitecture(
        "qwen3",
        layer=_DENSE | _HEAD_NORMS,
        biases=_QKV,
        settings={"use_sliding_window": False},
        own_head=True,
    ),
    "qwen3moe": GgufArchitecture(
        "qwen3_moe",
        layer=_ATTENTION | _NORMS | _HEAD_NORMS | _EXPERTS,
        biases=_QKV,
        settings={"use_sliding_window": False, "norm_topk_prob": True},
        own_head=True,
    ),
    "gemma": GgufArchitecture("gemma", biases=_QKV, norm_offset=True, own_head=True),
    "gemma2": GgufArchitecture(
        "gemma2",
        layer=_ATTENTION | _MLP | _GEMMA_NORMS,
        biases=_QKV,
        norm_offset=True,
        own_head=True,
    ),
    "gemma3": GgufArchitecture(
        "gemma3_text",
        layer=_ATTENTION | _MLP | _GEMMA_NORMS | _HEAD_NORMS,
        biases=_QKV,
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
            **_NORMS,
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
        biases=(*_QKV, "attn_output", *_MLP),
        mlp_bias_setting="mlp_bias",
        pairs=True,
        own_head=True,
        rope_tensors=_ROPE_TENSORS,
    ),
    "smollm3": GgufArchitecture(
        "smollm3",
        biases=_QKV,
        settings={"no_rope_layer_interval": 4, "use_sliding_window": False},
        pairs=True,
        own_head=True,
    ),
    "olmo2": GgufArchitecture(
        "olmo2",
        layer={
            **_ATTENTION,
            **_MLP,
            **_HEAD_NORMS,
            "post_attention_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        biases=_QKV,
    ),
    "starcoder2": GgufArchitecture(
        "starcoder2",
        layer={**_ATTENTION, **_NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        biases=(*_QKV, "attn_output", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"),
        needs_biases=True,
        settings={"use_bias": True, "sliding_window": None},
        epsilon="norm_epsilon",
        layer_norms=True,
        bias_setting=None,
    ),
    "nemotron": GgufArchitecture(
        "nemotron",
        layer={**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        biases=(*_QKV, "attn_output", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"),
        epsilon="norm_eps",
        layer_norms=True,
        mlp_bias_setting="mlp_bias",
        norm_offset=True,
        partial=True,
    ),
    "lfm2": GgufArchitecture(
        "lfm2",
        layer={
            "attn_q": "self_attn.q_proj",
            "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj",
            "attn_output": "self_attn.out_proj",
            "attn_q_norm": "self_attn.q_layernorm",
            "attn_k_norm": "self_attn.k_layernorm",
            **_LFM2_BOTH,
        },
        other_layer={
            "shortconv.conv": "conv.conv",
            "shortconv.in_proj": "conv.in_proj",
            "shortconv.out_proj": "conv.out_proj",
            **_LFM2_BOTH,
        },
        last_norm=("token_embd_norm", "model.embedding_norm"),
        settings={"block_auto_adjust_ff_dim": False, "conv_bias": False},
        epsilon="norm_eps",
        bias_setting=None,
    ),
}

_NO_ROPE = "it has no rotary position embedding (RoPE)"
_RECURRENT = "it has layers that don't attend"
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
    "lfm2moe": "its experts are chosen with biases that aren't read from GGUF",
    "qwen3next": _RECURRENT,
    "falcon": "transformers' model doesn't use the attention interface",
    "stablelm": "transformers' model doesn't use the attention interface",
    "deci": "its layers differ in heads, and transformers has no such model",
    "gpt-oss": "its attention has learned sinks",
    "gemma4": "its layers differ in heads or their size",
    "gemma3n": "its layers share KV caches",
    "deepseek2": "its KV cache is a latent one (MLA)",
    "minimax-m2": "its experts are chosen with biases that aren't read from GGUF",
    "clip": "it is the image part of a model; give the model's own file",
}
"""Architectures that can't be right, and why; any other is refused as not known."""
