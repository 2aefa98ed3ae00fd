"""Headers and tensors of tiny GGUF files of Gemma 3n and 4, see `tiny_gguf`.

llama.cpp knows one size of Gemma 3n's embeddings by layer, and that its first 20 layers have caches
of their own; so `gemma3n-shared` has 22. What a sparse MLP passes on depends on the deviation of
its numbers, whose sum llama.cpp divides by one less than there are. Hence MLPs are wider here, and
add little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, INNER, WIDE, VOCABULARY = 64, 96, 1024, 320
LAYERS = {"gemma3n": 6, "gemma3n-shared": 22, "gemma4": 7, "gemma4-plain": 4}
GEMMAS = tuple(LAYERS)
OWN = 4
"""Of `gemma4`: layers with a cache of their own."""

_SLIDING, _FULL = 16, 32
"""Dimensions of a head."""

Shapes = dict[str, tuple[int, ...]]


def sliding(name: str) -> list[bool]:
    """Which layers have a window."""
    if name.startswith("gemma3n"):
        return [index % 5 < 4 for index in range(LAYERS[name])]
    return [True, True, True, False, True, True, False] if name == "gemma4" else [
        True, False, True, False
    ]  # fmt: skip


def keys_of(name: str) -> dict[str, Any]:
    """What its header has beside the sizes that all have."""
    keys: dict[str, Any] = {"attention.sliding_window": 100, "rope.freq_base": 1e6}
    keys["attention.sliding_window_pattern"] = sliding(name)
    if name.startswith("gemma3n"):
        layers = LAYERS[name]
        return keys | {
            "feed_forward_length": WIDE,
            "altup.active_idx": 0,
            "altup.num_inputs": 4,
            "embedding_length_per_layer_input": 256,
            "attention.shared_kv_layers": max(0, layers - 20),
            "activation_sparsity_scale": [1.6448533535] * min(10, layers)
            + [-float("inf")] * (layers - 10),
        }
    heads = [2 if slides else 1 for slides in sliding(name)] if name == "gemma4" else 2
    return keys | {
        "attention.head_count_kv": heads,
        "attention.key_length": _FULL,
        "attention.value_length": _FULL,
        "attention.key_length_swa": _SLIDING,
        "attention.value_length_swa": _SLIDING,
        "rope.dimension_count": _FULL,
        "rope.dimension_count_swa": _SLIDING,
        "embedding_length_per_layer_input": 32 if name == "gemma4" else 0,
        "attention.shared_kv_layers": 3 if name == "gemma4" else 0,
        "feed_forward_length": [INNER] * OWN + [2 * INNER] * 3 if name == "gemma4" else INNER,
        "final_logit_softcapping": 2.0,
    }


def layer_of(name: str, index: int, layer: Shapes) -> Shapes:
    """A layer's tensors, of a plain layer's."""
    norms = ("post_attention_norm", "post_ffw_norm")
    layer = layer | {f"{norm}.weight": (WIDTH,) for norm in norms}
    full = name.startswith("gemma4") and not sliding(name)[index]
    head = _FULL if full else _SLIDING
    kv = head * (1 if full and name == "gemma4" else 2)
    layer |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
    layer |= {"attn_q.weight": (4 * head, WIDTH), "attn_output.weight": (WIDTH, 4 * head)}
    layer |= {"attn_k.weight": (kv, WIDTH), "attn_v.weight": (kv, WIDTH)}
    if name.startswith("gemma3n"):
        wide = {f"ffn_{part}.weight": (WIDE, WIDTH) for part in ("gate", "up")}
        layer |= wide | {"ffn_down.weight": (WIDTH, WIDE)}
        return layer | _input(256) | {
            "altup_correct_coef.weight": (4, 4),
            "altup_correct_scale.weight": (WIDTH,),
            "altup_predict_coef.weight": (16, 4),
            "altup_router.weight": (4, WIDTH),
            "altup_router_norm.weight": (WIDTH,),
            "laurel_l.weight": (64, WIDTH),
            "laurel_r.weight": (WIDTH, 64),
            "laurel_post_norm.weight": (WIDTH,),
        }  # fmt: skip
    layer["layer_output_scale.weight"] = (1,)
    if name != "gemma4":
        return layer
    if full:
        del layer["attn_v.weight"]
    if index >= OWN:
        layer |= {f"ffn_{part}.weight": (2 * INNER, WIDTH) for part in ("gate", "up")}
        layer["ffn_down.weight"] = (WIDTH, 2 * INNER)
    return layer | _input(32)


def others_of(name: str) -> Shapes:
    """The tensors outside of layers."""
    found: Shapes = {}
    if name != "gemma4-plain":
        wide = (32 if name == "gemma4" else 256) * LAYERS[name]
        found = {
            "per_layer_token_embd.weight": (VOCABULARY, wide),
            "per_layer_model_proj.weight": (wide, WIDTH),
            "per_layer_proj_norm.weight": (wide // LAYERS[name],),
        }
    if name.startswith("gemma3n"):
        return found | {
            f"altup_{part}.weight": (3, WIDTH, WIDTH) for part in ("proj", "unembd_proj")
        }
    return found | {"rope_freqs.weight": (_FULL // 2,)}


def divisors() -> np.ndarray:
    """Of full layers' angles: a quarter of them turns."""
    return np.float32([1.0] * 4 + [1e30] * 12)


def _input(width: int) -> Shapes:
    """The tensors of a layer's own embedding."""
    return {
        "inp_gate.weight": (width, WIDTH),
        "proj.weight": (WIDTH, width),
        "post_norm.weight": (WIDTH,),
    }
