"""GGUF's architectures with Mamba-2: Granite 4 H and Falcon-H1."""

from __future__ import annotations

from collections.abc import Mapping

from edgeinfinite.models.checkpoint.gguf.architecture import (
    ATTENTION,
    LOCAL_EXPERTS,
    NORMS,
    QKV,
    GgufArchitecture,
    experts,
)
from edgeinfinite.models.checkpoint.gguf.places import FLAT, LOG_OF_MINUS, Part, To

_MAMBA: dict[str, str | To] = {
    "ssm_in": "mamba.in_proj",
    "ssm_conv1d": "mamba.conv1d",
    "ssm_conv1d.bias": To("mamba.conv1d.bias"),
    "ssm_dt.bias": To("mamba.dt_bias"),
    "ssm_a": To("mamba.A_log", turn=LOG_OF_MINUS),
    "ssm_d": To("mamba.D", turn=FLAT),
    "ssm_norm.weight": To("mamba.norm.weight", turn=FLAT),
    "ssm_out": "mamba.out_proj",
}


def _shared_mlp(end: str) -> dict[str, str | To]:
    """Granite's dense MLP, or the one beside its experts."""
    joined = "shared_mlp.input_linear.weight"
    return {
        f"ffn_gate{end}.weight": To(joined, Part(0)),
        f"ffn_up{end}.weight": To(joined, Part(1)),
        f"ffn_down{end}": "shared_mlp.output_linear",
    }


GRANITE_EXPERTS: dict[str, str | To] = {
    "ffn_gate_inp": "block_sparse_moe.router",
    **experts("block_sparse_moe.experts"),
    **_shared_mlp("_shexp"),
}


def _granite(mlp: Mapping[str, str | To]) -> GgufArchitecture:
    return GgufArchitecture(
        "granitemoehybrid",
        layer={**ATTENTION, **NORMS, **mlp},
        other_layer={**_MAMBA, **NORMS, **mlp},
        other_type="linear_attention",
        biases=(*QKV, "attn_output"),
        expert_names=LOCAL_EXPERTS,
        pairs=True,
        own_head=True,
    )


HYBRIDS: Mapping[str, GgufArchitecture] = {
    "granitehybrid": _granite(_shared_mlp("")),
    "granitehybrid with experts": _granite(GRANITE_EXPERTS),
    "falcon-h1": GgufArchitecture(
        "falcon_h1",
        layer={
            **ATTENTION,
            **_MAMBA,
            "attn_norm": "input_layernorm",
            "ffn_norm": To("pre_ff_layernorm.weight"),
            "ffn_gate": "feed_forward.gate_proj",
            "ffn_up": "feed_forward.up_proj",
            "ffn_down": "feed_forward.down_proj",
        },
        last_norm=("output_norm", "model.final_layernorm"),
        biases=(*QKV, "ffn_gate", "ffn_up", "ffn_down"),
        settings={"mamba_norm_before_gate": False},
        mlp_bias_setting="mlp_bias",
        own_head=True,
    ),
}
"""Falcon-H1's multipliers are in its file's weights, and the norm's tensor has no suffix."""
