"""Headers and tensors of tiny GGUF files of OLMoE, Granite MoE, GPT-OSS and LFM2 MoE; see
`tiny_gguf`.
"""

from __future__ import annotations

from typing import Any

WIDTH, INNER, HEADS, KV_HEADS, HEAD, EXPERTS, USED, SHARED, THIN = 64, 96, 4, 2, 16, 4, 2, 32, 32
LAYERS = {"olmoe": 2, "granitemoe": 2, "granitemoe-shared": 2, "gpt-oss": 4, "lfm2moe": 5}
SPARSE = tuple(LAYERS)
_CONVOLUTIONS = (0, 2, 3)
"""Layers of `lfm2moe` that don't attend; its first two are dense."""

Shapes = dict[str, tuple[int, ...]]


def keys_of(name: str) -> dict[str, Any]:
    """What its header has beside the sizes that all have."""
    keys: dict[str, Any] = {"expert_count": EXPERTS, "expert_used_count": USED}
    if name == "olmoe":
        keys["attention.head_count_kv"] = HEADS
    if name.startswith("granitemoe"):
        keys |= {"logit_scale": 3.0, "residual_scale": 0.4, "embedding_scale": 2.0}
        keys["attention.scale"] = 0.2
    if name == "granitemoe-shared":
        keys["expert_shared_feed_forward_length"] = SHARED
    if name in ("gpt-oss", "lfm2moe"):
        keys["expert_feed_forward_length"] = THIN
    if name == "gpt-oss":
        keys |= {"attention.sliding_window": 100, "rope.freq_base": 150000.0}
    if name == "lfm2moe":
        heads = [0 if layer in _CONVOLUTIONS else KV_HEADS for layer in range(LAYERS[name])]
        keys |= {"attention.head_count_kv": heads, "shortconv.l_cache": 3}
        keys |= {"leading_dense_block_count": 2, "expert_gating_func": 2}
    return keys


def layer_of(name: str, index: int, layer: Shapes) -> Shapes:
    """A layer's tensors, of a plain layer's."""
    q, kv = HEADS * HEAD, (HEADS if name == "olmoe" else KV_HEADS) * HEAD
    layer = layer | {"attn_k.weight": (kv, WIDTH), "attn_v.weight": (kv, WIDTH)}
    if name == "olmoe":
        layer |= {"attn_q_norm.weight": (q,), "attn_k_norm.weight": (kv,)}
    if name == "lfm2moe":
        layer |= {"attn_q_norm.weight": (HEAD,), "attn_k_norm.weight": (HEAD,)}
        if index in _CONVOLUTIONS:
            layer = {part: shape for part, shape in layer.items() if not part.startswith("attn_")}
            layer |= {
                "attn_norm.weight": (WIDTH,),
                "shortconv.conv.weight": (WIDTH, 3),
                "shortconv.in_proj.weight": (3 * WIDTH, WIDTH),
                "shortconv.out_proj.weight": (WIDTH, WIDTH),
            }
        if index < 2:
            return layer
        layer["exp_probs_b.bias"] = (EXPERTS,)
    inner = THIN if name in ("gpt-oss", "lfm2moe") else INNER
    for part in ("gate", "up", "down"):
        del layer[f"ffn_{part}.weight"]
        wide = (WIDTH, inner) if part == "down" else (inner, WIDTH)
        layer[f"ffn_{part}_exps.weight"] = (EXPERTS, *wide)
        if name == "gpt-oss":
            layer[f"ffn_{part}_exps.bias"] = (EXPERTS, wide[0])
        if name == "granitemoe-shared":
            wide = (WIDTH, SHARED) if part == "down" else (SHARED, WIDTH)
            layer[f"ffn_{part}_shexp.weight"] = wide
    layer["ffn_gate_inp.weight"] = (EXPERTS, WIDTH)
    if name == "gpt-oss":
        layer["post_attention_norm.weight"] = layer.pop("ffn_norm.weight")
        layer |= {"attn_sinks.weight": (HEADS,), "ffn_gate_inp.bias": (EXPERTS,)}
        layer |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        layer["attn_output.bias"] = (WIDTH,)
    return layer
