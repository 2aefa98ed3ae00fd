"""What the configurations of models with Mamba-2 need, see `family_settings`."""

from __future__ import annotations

from typing import Any

from edgeinfinite.models.checkpoint.gguf.family_settings import Ropes, granite
from edgeinfinite.models.checkpoint.gguf.header import Header


def granite_hybrid(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Granite 4 H, which is without RoPE if its file says so."""
    width = settings["hidden_size"]
    found = granite(header, settings, ropes) | _mamba(header)
    inner = header.positive("ssm.inner_size")
    if inner != 2 * width:
        raise header.refuse(
            "ssm.inner_size", f"is {inner}; of Granite it is twice the width, {width}"
        )
    if header.flag("rope.scaling.finetuned", True):
        found["position_embedding_type"] = "rope"
    else:
        ropes.clear()
    shared = header.whole("expert_shared_feed_forward_length", 0)
    if not header.whole("expert_count", 0):
        return (
            found
            | {"num_local_experts": 0, "num_experts_per_tok": 0}
            | {"shared_intermediate_size": settings["intermediate_size"]}
        )
    if not shared:
        raise header.refuse(
            "expert_shared_feed_forward_length", "is 0: without a shared expert it isn't read"
        )
    return found | {"shared_intermediate_size": shared}


def falcon_h1(header: Header, _settings: dict[str, Any], _ropes: Ropes) -> dict[str, Any]:
    """Falcon-H1, with a norm behind its SSM or without."""
    found = _mamba(header) | {"mamba_d_ssm": header.positive("ssm.inner_size")}
    return found | {"mamba_rms_norm": "blk.0.ssm_norm.weight" in header.tensors}


def _mamba(header: Header) -> dict[str, Any]:
    """The sizes of Mamba-2's layers."""
    inner, heads = header.positive("ssm.inner_size"), header.positive("ssm.time_step_rank")
    groups, kernel = header.positive("ssm.group_count"), header.whole("ssm.conv_kernel")
    if inner % heads:
        raise header.refuse("ssm.time_step_rank", f"is {heads}, of {inner} channels")
    if inner % groups or heads % groups:
        raise header.refuse("ssm.group_count", f"is {groups}, of {heads} heads, {inner} channels")
    if kernel < 2:
        raise header.refuse("ssm.conv_kernel", f"is {kernel}; it must be 2 or more")
    return {
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_d_state": header.positive("ssm.state_size"),
        "mamba_n_groups": groups,
        "mamba_d_conv": kernel,
    }
