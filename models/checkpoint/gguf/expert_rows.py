"""GGUF's architectures with experts that are only known with them: OLMoE, Granite, GPT-OSS."""

from __future__ import annotations

from collections.abc import Mapping

from edgeinfinite.models.checkpoint.gguf.architecture import (
    ATTENTION,
    EXPERTS,
    HEAD_NORMS,
    LOCAL_EXPERTS,
    NORMS,
    QKV,
    ROPE_TENSORS,
    GgufArchitecture,
)
from edgeinfinite.models.checkpoint.gguf.hybrid_rows import GRANITE_EXPERTS
from edgeinfinite.models.checkpoint.gguf.places import TRANSPOSED, Part, To

SPARSE: Mapping[str, GgufArchitecture] = {
    "olmoe": GgufArchitecture(
        "olmoe",
        layer=ATTENTION | NORMS | HEAD_NORMS | EXPERTS,
        biases=QKV,
        settings={"norm_topk_prob": False},
        expert_names=("num_experts", "num_experts_per_tok", ""),
    ),
    "granitemoe": GgufArchitecture(
        "granitemoe",
        layer=ATTENTION | NORMS | GRANITE_EXPERTS,
        biases=(*QKV, "attn_output"),
        expert_names=LOCAL_EXPERTS,
        pairs=True,
        own_head=True,
        rope_tensors=ROPE_TENSORS,
    ),
    "gpt-oss": GgufArchitecture(
        "gpt_oss",
        layer={
            **ATTENTION,
            "attn_sinks.weight": To("self_attn.sinks"),
            "attn_norm": "input_layernorm",
            "post_attention_norm": "post_attention_layernorm",
            "ffn_gate_inp": "mlp.router",
            **{
                f"ffn_{name}_exps.weight": To(
                    "mlp.experts.gate_up_proj", Part(number, axis=2, in_turns=True), TRANSPOSED
                )
                for number, name in enumerate(("gate", "up"))
            },
            **{
                f"ffn_{name}_exps.bias": To(
                    "mlp.experts.gate_up_proj_bias", Part(number, axis=1, in_turns=True)
                )
                for number, name in enumerate(("gate", "up"))
            },
            "ffn_down_exps.weight": To("mlp.experts.down_proj", turn=TRANSPOSED),
            "ffn_down_exps.bias": To("mlp.experts.down_proj_bias"),
        },
        biases=(*QKV, "attn_output", "ffn_gate_inp"),
        settings={"attention_bias": True},
        expert_names=("num_local_experts", "num_experts_per_tok", "intermediate_size"),
        bias_setting=None,
        own_head=True,
    ),
}
"""Of GPT-OSS, an expert's gates and values take turns in transformers' parameter."""
