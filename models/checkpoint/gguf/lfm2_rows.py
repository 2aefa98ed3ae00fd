"""GGUF's architectures with short convolutions: LFM2, with experts and without."""

from __future__ import annotations

from collections.abc import Mapping

from edgeinfinite.models.checkpoint.gguf.architecture import GgufArchitecture, experts
from edgeinfinite.models.checkpoint.gguf.places import To

_NORMS = {"attn_norm": "operator_norm", "ffn_norm": "ffn_norm"}
_MLP = {
    "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3",
    "ffn_down": "feed_forward.w2",
}
_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.out_proj",
    "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm",
}
_CONVOLUTION = {
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
}
_EXPERTS: dict[str, str | To] = {
    "ffn_gate_inp": "feed_forward.gate",
    "exp_probs_b.bias": To("feed_forward.expert_bias"),
    **experts("feed_forward.experts"),
}
_SIGMOID = 2

LFM2S: Mapping[str, GgufArchitecture] = {
    "lfm2": GgufArchitecture(
        "lfm2",
        layer=_ATTENTION | _NORMS | _MLP,
        other_layer=_CONVOLUTION | _NORMS | _MLP,
        last_norm=("token_embd_norm", "model.embedding_norm"),
        settings={"block_auto_adjust_ff_dim": False, "conv_bias": False},
        epsilon="norm_eps",
        bias_setting=None,
    ),
    "lfm2moe": GgufArchitecture(
        "lfm2_moe",
        layer=_ATTENTION | _NORMS | _EXPERTS,
        other_layer=_CONVOLUTION | _NORMS | _EXPERTS,
        dense=_MLP,
        gating=_SIGMOID,
        last_norm=("token_embd_norm", "model.embedding_norm"),
        settings={
            "conv_bias": False,
            "use_expert_bias": True,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.0,
        },
        epsilon="norm_eps",
        bias_setting=None,
    ),
}
