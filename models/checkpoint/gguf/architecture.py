"""What is known about one of GGUF's architectures, and what several have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from edgeinfinite.models.checkpoint.gguf.places import Part, To


def experts(module: str) -> dict[str, str | To]:
    """Those of all experts of a layer, whose gates and values transformers has in one parameter."""
    return {
        "ffn_gate_exps.weight": To(f"{module}.gate_up_proj", Part(0, axis=1)),
        "ffn_up_exps.weight": To(f"{module}.gate_up_proj", Part(1, axis=1)),
        "ffn_down_exps.weight": To(f"{module}.down_proj"),
    }


ATTENTION: dict[str, str | To] = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
MLP: dict[str, str | To] = {
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NORMS: dict[str, str | To] = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
GEMMA_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
EXPERTS: dict[str, str | To] = {
    "ffn_gate_inp": "mlp.gate",
    **experts("mlp.experts"),
}
SHARED_EXPERT = {
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
}
LOCAL_EXPERTS = ("num_local_experts", "num_experts_per_tok", "")
DENSE = ATTENTION | MLP | NORMS
QKV = ("attn_q", "attn_k", "attn_v")
ROPE_TENSORS = ("rope_freqs", "rope_factors")


@dataclass(frozen=True)
class GgufArchitecture:
    """One architecture.

    Args:
        model_type: of transformers' configuration.
        layer: tensors of a layer, without `blk.{i}.` and suffix, to modules of transformers'; the
            whole name of a tensor to what is no module's weight as it is.
        other_layer: those of a layer that doesn't attend, which has no KV heads in the header;
            none: every layer attends.
        types_apart: which layers attend is in other keys than that of KV heads, as the family's
            settings say.
        predicting: further tensors of a last block that predicts a second token, which nothing is
            computed with; its other tensors are those of `layer`. None: there is no such block.
        model: tensors outside of layers beside the usual ones, as `layer`, to the decoder's parts.
        by_layer: KV heads and inner width may differ by layer, as the family's settings say.
        last_norm: the tensor of the last norm, and its module.
        biases: those of `layer` that may have a bias, each in any layer or none.
        needs_biases: all of `biases`, and of the norms, must be there.
        settings: what transformers' configuration needs beside the header.
        epsilon: the configuration's name for the norms' epsilon, which is a header's
            `attention.layer_norm_rms_epsilon`, or `layer_norm_epsilon` if `layer_norms`.
        other_type: how transformers' `layer_types` call a layer that doesn't attend.
        expert_names: the configuration's names for how many experts there are, how many a token
            has, and their inner width; the last is "" if that is `feed_forward_length`.
        gating: the number of the only `expert_gating_func` that is read.
        dense: what the configuration's first `num_dense_layers` have in the place of experts.
        layer_norms: the norms are LayerNorm, not RMSNorm.
        bias_setting: of the configuration, on if there is a bias of q, k, v or the output.
        mlp_bias_setting: the same of the MLP.
        pairs: RoPE turns neighbouring dimensions, so the rows of Q and K are in another order.
        norm_offset: the file's norms are transformers' plus one.
        partial: RoPE may turn a part of a head.
        sections: angles are shared among an image's grids, as the family's settings say.
        rope_by_factors: transformers' configuration knows scaled RoPE as `longrope` only.
        own_head: the size of a head may differ from the width divided by the heads.
        rope_tensors: which of `rope_freqs` (not with LongRoPE) and `rope_factors` it reads.
        yarn_keys: the header's settings of YaRN are read, not only its factor.
        unused: keys that llama.cpp doesn't use for it, though they may stand in files, and why.
    """

    model_type: str
    layer: Mapping[str, str | To] = field(default_factory=lambda: MappingProxyType(DENSE))
    other_layer: Mapping[str, str | To] = field(default_factory=dict)
    types_apart: bool = False
    predicting: tuple[str, ...] = ()
    model: Mapping[str, str | To] = field(default_factory=dict)
    by_layer: bool = False
    other_type: str = "conv"
    last_norm: tuple[str, str] = ("output_norm", "model.norm")
    biases: tuple[str, ...] = ()
    needs_biases: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    epsilon: str = "rms_norm_eps"
    expert_names: tuple[str, str, str] = (
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
    )
    gating: int = 1
    dense: Mapping[str, str | To] = field(default_factory=dict)
    layer_norms: bool = False
    bias_setting: str | None = "attention_bias"
    mlp_bias_setting: str | None = None
    pairs: bool = False
    norm_offset: bool = False
    partial: bool = False
    sections: bool = False
    rope_by_factors: bool = False
    own_head: bool = False
    rope_tensors: tuple[str, ...] = ()
    yarn_keys: bool = False
    unused: Mapping[str, str] = field(default_factory=dict)
