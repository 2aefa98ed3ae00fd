"""Headers and tensors of tiny GGUF files of hybrids: Granite 4 H and Falcon-H1; see `tiny_gguf`."""

from __future__ import annotations

from typing import Any

WIDTH, INNER, HEADS, KV_HEADS, HEAD = 64, 96, 4, 2, 16
SSM_HEADS, STATE, KERNEL, EXPERTS, SHARED = 8, 24, 4, 4, 32
LAYERS = {"granitehybrid": 4, "granitehybrid-experts": 4, "falcon-h1": 2, "falcon-h1-norm": 2}
HYBRIDS = tuple(LAYERS)
Shapes = dict[str, tuple[int, ...]]


def keys_of(name: str) -> dict[str, Any]:
    """What its header has beside the sizes that all have."""
    granite = name.startswith("granite")
    keys = {
        "ssm.conv_kernel": KERNEL,
        "ssm.inner_size": _channels(name),
        "ssm.state_size": STATE,
        "ssm.time_step_rank": SSM_HEADS,
        "ssm.group_count": 2,
    }
    if not granite:
        return keys
    keys |= {"logit_scale": 3.0, "residual_scale": 0.4, "embedding_scale": 2.0}
    keys |= {"attention.scale": 0.2, "rope.scaling.finetuned": False}
    keys["attention.head_count_kv"] = [0, KV_HEADS, 0, KV_HEADS]
    if name.endswith("experts"):
        keys |= {"expert_count": EXPERTS, "expert_used_count": 2}
        keys["expert_shared_feed_forward_length"] = SHARED
    return keys


def layer_of(name: str, index: int, layer: Shapes) -> Shapes:
    """A layer's tensors, of a plain layer's."""
    channels = _channels(name)
    mixed = channels + 2 * 2 * STATE
    mamba: Shapes = {
        "ssm_in.weight": (channels + mixed + SSM_HEADS, WIDTH),
        "ssm_conv1d.weight": (mixed, KERNEL),
        "ssm_conv1d.bias": (mixed,),
        "ssm_dt.bias": (SSM_HEADS,),
        "ssm_a": (SSM_HEADS, 1),
        "ssm_d": (SSM_HEADS, 1),
        "ssm_out.weight": (WIDTH, channels),
    }
    if name != "falcon-h1":
        mamba["ssm_norm.weight"] = (2, channels // 2)
    layer = dict(layer)
    if name.startswith("falcon-h1"):
        layer["ffn_norm"] = layer.pop("ffn_norm.weight")
        return layer | mamba
    if name.endswith("experts"):
        for part in ("gate", "up", "down"):
            rows, columns = layer.pop(f"ffn_{part}.weight")
            layer[f"ffn_{part}_exps.weight"] = (EXPERTS, rows, columns)
            size = {INNER: SHARED, WIDTH: WIDTH}
            layer[f"ffn_{part}_shexp.weight"] = (size[rows], size[columns])
        layer["ffn_gate_inp.weight"] = (EXPERTS, WIDTH)
    if index % 2:
        return layer
    kept = {part: shape for part, shape in layer.items() if not part.startswith("attn_")}
    return kept | {"attn_norm.weight": (WIDTH,)} | mamba


def _channels(name: str) -> int:
    return 2 * WIDTH if name.startswith("granite") else 192
