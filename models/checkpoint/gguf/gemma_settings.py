"""What the configurations of Gemma 3n and 4 need, see `family_settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgeinfinite.models.checkpoint.gguf.family_settings import FULL, SLIDING, Ropes, window
from edgeinfinite.models.checkpoint.gguf.gemma_rows import ALTUP
from edgeinfinite.models.checkpoint.gguf.header import Header

_LAUREL, _BY_LAYER, _CAP = 64, 256, 30.0
_OWN, _SPARSE, _SPARSITY = 20, 10, 0.95
"""Of Gemma 3n, whatever its header says: layers with a cache of their own, the first layers whose
MLPs are sparse, and how sparse."""

_DEVIATIONS = 1.6448533535
"""Standard deviations below which that share of a normal distribution lies."""

_NEVER = 1e20
"""A divisor from which on an angle doesn't turn within any text; converters write 1e30."""


def gemma3n(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Gemma 3n, of which llama.cpp knows the sizes that its two models have."""
    layers = settings["num_hidden_layers"]
    for key, wanted in {
        "altup.num_inputs": ALTUP,
        "altup.active_idx": 0,
        "embedding_length_per_layer_input": _BY_LAYER,
        "attention.shared_kv_layers": max(0, layers - _OWN),
        "final_logit_softcapping": _CAP,
    }.items():
        header.must_be(key, wanted, f"llama.cpp computes with {wanted}")
    _check_sparsity(header, layers)
    base, scaling = _sliding_rope(header)
    ropes[SLIDING] = replace(ropes[FULL], base=base, factor=1.0, yarn=None, attention=scaling)
    header.positive("attention.sliding_window")
    found = window(header, settings, 5)
    _check_shared(header, found["layer_types"], min(_OWN, layers))
    sparse = min(_SPARSE, layers)
    return found | {
        "altup_num_inputs": ALTUP,
        "altup_active_idx": 0,
        "laurel_rank": _LAUREL,
        "hidden_size_per_layer_input": _BY_LAYER,
        "vocab_size_per_layer_input": settings["vocab_size"],
        "num_kv_shared_layers": max(0, layers - _OWN),
        "activation_sparsity_pattern": [_SPARSITY] * sparse + [0.0] * (layers - sparse),
        "final_logit_softcapping": _CAP,
    }


def gemma4(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Gemma 4 without experts."""
    layers, full = settings["num_hidden_layers"], settings["head_dim"]
    header.positive("attention.sliding_window")
    found = window(header, settings, 0)
    types = found["layer_types"]
    if types[-1] != FULL:
        raise header.refuse(
            "attention.sliding_window_pattern", "ends with a sliding layer, which isn't read"
        )
    shared = header.whole("attention.shared_kv_layers", 0)
    if shared >= layers:
        raise header.refuse("attention.shared_kv_layers", f"is {shared}, of {layers} layers")
    _check_shared(header, types, layers - shared)
    head = header.positive("attention.key_length_swa")
    header.must_be("attention.value_length_swa", head, "keys and values must have one size")
    if header.whole("rope.dimension_count_swa", full) != head:
        raise header.refuse(
            "rope.dimension_count_swa", f"isn't {head}, a sliding layer's whole head"
        )
    base, scaling = _sliding_rope(header)
    rope = ropes[FULL]
    if rope.factor != 1 or rope.yarn or rope.attention != 1:
        raise header.refuse("rope.scaling.type", "scales: Gemma 4 with scaled RoPE isn't read")
    unturned = _unturned(header, rope.short)
    ropes[FULL] = replace(rope, unturned=unturned, short=None, long=None)
    ropes[SLIDING] = replace(
        ropes[FULL], base=base, head=head, turned=head, unturned=None, attention=scaling
    )
    by_layer = header.whole("embedding_length_per_layer_input")
    return (
        found
        | _kv_heads(header, settings, types, layers - shared)
        | _widths(header, layers, layers - shared)
        | {
            "head_dim": head,
            "global_head_dim": full,
            "num_kv_shared_layers": shared,
            "hidden_size_per_layer_input": by_layer,
            "vocab_size_per_layer_input": settings["vocab_size"],
            "final_logit_softcapping": header.real("final_logit_softcapping", _CAP) or None,
        }
    )


def _sliding_rope(header: Header) -> tuple[float, float]:
    """The base of sliding layers, and the factor of cos and sin."""
    base = header.real("rope.freq_base_swa", 10000.0)
    if base <= 1:
        raise header.refuse("rope.freq_base_swa", f"is {base}")
    return base, header.real("rope.scaling.attn_factor", 1.0)


def _check_sparsity(header: Header, layers: int) -> None:
    """Refuses other sparse layers than the first ten, as far as the header states them."""
    key = "activation_sparsity_scale"
    if not header.has(key):
        return
    given = np.atleast_1d(np.asarray(header.value(key), np.float64))
    sparse = min(_SPARSE, layers)
    first, others = given[:sparse], given[sparse:]
    if (
        len(given) != layers
        or abs(first - _DEVIATIONS).max() > 1e-3
        or not np.isneginf(others).all()
    ):
        raise header.refuse(
            key, f"isn't that of a sparsity of {_SPARSITY} in the first {_SPARSE} layers alone"
        )


def _check_shared(header: Header, types: Sequence[str], own: int) -> None:
    """Refuses a pattern by which layers would read another cache in llama.cpp.

    There it is that of the last layer with a cache of its own, of sliding layers that of the one
    before; transformers goes by the type.
    """
    read = {kind: own - (2 if kind == SLIDING else 1) for kind in sorted(set(types))}
    for kind, layer in read.items() if own < len(types) else ():
        if types[layer] != kind or kind in types[layer + 1 : own]:
            raise header.refuse(
                "attention.sliding_window_pattern",
                f"has no {kind.replace('_', ' ')} in layer {layer}, whose cache is read by others",
            )


def _unturned(header: Header, divisors: np.ndarray | None) -> int:
    """How many angles of full layers don't turn, the last ones."""
    if divisors is None:
        raise header.refuse(
            "rope.dimension_count", "has no tensor rope_freqs.weight, which it needs"
        )
    turned = int((divisors == 1).sum())
    if not ((divisors[:turned] == 1).all() and (divisors[turned:] >= _NEVER).all()):
        raise header.refuse(
            "rope.dimension_count", "has a tensor rope_freqs.weight that isn't ones, then 1e30"
        )
    return len(divisors) - turned


def _kv_heads(
    header: Header, settings: Mapping[str, Any], types: Sequence[str], own: int
) -> dict[str, Any]:
    """KV heads of sliding and of full layers, which differ if full layers take keys as values."""
    key, layers = "attention.head_count_kv", len(types)
    counts = header.by_layer(key, layers, settings["num_attention_heads"])
    heads = {
        kind: {n for n, one in zip(counts, types, strict=True) if one == kind} for kind in types
    }
    if any(len(found) > 1 or 0 in found for found in heads.values()):
        raise header.refuse(key, "differs among layers of one type, or is 0")
    full = next(iter(heads[FULL]))
    sliding = next(iter(heads.get(SLIDING, {full})))
    for count in (full, sliding):
        if settings["num_attention_heads"] % count:
            raise header.refuse(key, f"is {count}, of {settings['num_attention_heads']} heads")
    full_layers = [layer for layer in range(own) if types[layer] == FULL]
    k_eq_v = not any(f"blk.{layer}.attn_v.weight" in header.tensors for layer in full_layers)
    if full != sliding and not k_eq_v:
        raise header.refuse(key, "differs by layer, which is read with keys as values alone")
    return {
        "num_key_value_heads": sliding,
        "num_global_key_value_heads": full,
        "attention_k_eq_v": k_eq_v,
    }


def _widths(header: Header, layers: int, own: int) -> dict[str, Any]:
    """The inner width of the MLPs, which may be twice as much in layers that share a cache."""
    widths = header.by_layer("feed_forward_length", layers)
    inner = widths[0]
    for times in (1, 2):
        if inner and widths == [inner] * own + [inner * times] * (layers - own):
            return {"intermediate_size": inner, "use_double_wide_mlp": times == 2}
    raise header.refuse(
        "feed_forward_length",
        "differs by layer otherwise than twice as much where caches are shared",
    )
