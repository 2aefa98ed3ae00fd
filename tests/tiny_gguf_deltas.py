"""Headers and tensors of tiny GGUF files of Qwen3.5, see `tiny_gguf`.

`qwen35-predicting` has a block more, which predicts a second token and isn't computed with.
"""

from __future__ import annotations

from typing import Any

WIDTH, HEADS, KV_HEADS, HEAD = 64, 4, 2, 32
KEYS, VALUES, SIZE, KERNEL = 2, 6, 16, 4
"""Of the delta rule: key heads, value heads, dimensions of a head, and what is convolved."""

LAYERS = {"qwen35": 4, "qwen35-predicting": 5}
DELTAS = tuple(LAYERS)
FULL = 3
"""The layers from here on attend."""

Shapes = dict[str, tuple[int, ...]]


def keys_of(name: str) -> dict[str, Any]:
    """What its header has beside the sizes that all have."""
    more = {"nextn_predict_layers": 1} if name == "qwen35-predicting" else {}
    return more | {
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.recurrent_layers": [index < FULL for index in range(LAYERS[name])],
        "full_attention_interval": 4,
        "rope.dimension_count": HEAD // 2,
        "rope.dimension_sections": [3, 3, 2, 0],
        "ssm.conv_kernel": KERNEL,
        "ssm.state_size": SIZE,
        "ssm.group_count": KEYS,
        "ssm.time_step_rank": VALUES,
        "ssm.inner_size": VALUES * SIZE,
    }


def layer_of(index: int, layer: Shapes) -> Shapes:
    """A layer's tensors, of a plain layer's."""
    layer = dict(layer)
    layer["post_attention_norm.weight"] = layer.pop("ffn_norm.weight")
    if index >= FULL:
        layer |= {
            "attn_q.weight": (2 * HEADS * HEAD, WIDTH),
            "attn_k.weight": (KV_HEADS * HEAD, WIDTH),
            "attn_v.weight": (KV_HEADS * HEAD, WIDTH),
            "attn_output.weight": (WIDTH, HEADS * HEAD),
            "attn_q_norm.weight": (HEAD,),
            "attn_k_norm.weight": (HEAD,),
        }
        wide = {"eh_proj": (WIDTH, 2 * WIDTH), "enorm": (WIDTH,), "hnorm": (WIDTH,)}
        more = {f"nextn.{part}.weight": shape for part, shape in wide.items()}
        return layer | (more if index > FULL else {})
    values, mixed = VALUES * SIZE, (2 * KEYS + VALUES) * SIZE
    kept = {part: shape for part, shape in layer.items() if not part.startswith("attn_")}
    return kept | {
        "attn_norm.weight": (WIDTH,),
        "attn_qkv.weight": (mixed, WIDTH),
        "attn_gate.weight": (values, WIDTH),
        "ssm_conv1d.weight": (mixed, KERNEL),
        "ssm_dt.bias": (VALUES,),
        "ssm_a": (VALUES,),
        "ssm_alpha.weight": (VALUES, WIDTH),
        "ssm_beta.weight": (VALUES, WIDTH),
        "ssm_norm.weight": (SIZE,),
        "ssm_out.weight": (WIDTH, values),
    }
