"""ONNX Runtime's fused operators, as functions that `torch.onnx.export` turns into one node each.

They compute nothing in PyTorch (zeros of the right shape): they are for tracing only.
Letters: B batch, H heads, T tokens, D head dimension, I inputs, O outputs, V vocabulary, g group.
Of a delta rule: U heads of values, I dimensions of a key, J of a value.
"""

from __future__ import annotations

import torch
from torch.onnx.ops import symbolic, symbolic_multi_out

OWN_DOMAIN = "edgeinfinite"
"""Of nodes that stand for others until a pass over the traced graph replaces them."""

INT8_ACTIVATIONS = 4
EXACT_ACTIVATIONS = 1
"""`accuracy_level` of MatMulNBits: activations are rounded to 8 bits, group by group."""

_INPUTS_BEFORE_SINKS = 4
"""Optional inputs of GroupQueryAttention that aren't used: angles, positions, a bias."""


def group_query_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    last_slot: torch.Tensor,
    total: torch.Tensor,
    *,
    heads: int,
    kv_heads: int,
    scale: float,
    softcap: float,
    window: int,
    scales: tuple[torch.Tensor, torch.Tensor] | None = None,
    sinks: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Appends K and V to the cache and attends causally to the whole cache.

    Args:
        query: `[1, T, H * D]`, after RoPE; key and value `[1, T, K * D]`.
        k_cache, v_cache: `[1, K, C, D]`.
        last_slot: `[1]` int32, slots in use after the call minus one.
        total: `[1]` int32, slots in use after the call.
        window: the number of newest slots that a token sees, its own included; -1 for all.
        scales: of int8 caches, `[1, K, 1, D]` float32 of K and of V; then Q, K and V are float32.
        sinks: `[H]` in the query's type, a logit of each head beside its scores; None for none.

    Returns:
        `[1, T, H * D]` and the two caches.
    """
    inputs: list[torch.Tensor | None] = [query, key, value, k_cache, v_cache, last_slot, total]
    rounding: dict[str, str | int] = {}
    if sinks is not None or scales is not None:
        inputs += [*[None] * _INPUTS_BEFORE_SINKS, sinks]
    if scales is not None:
        inputs += scales
        by_channel = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_CHANNEL")
        rounding = {**by_channel, "kv_cache_bit_width": 8}
    attended, k_cache_out, v_cache_out = symbolic_multi_out(
        "com.microsoft::GroupQueryAttention",
        inputs,
        {
            "num_heads": heads,
            "kv_num_heads": kv_heads,
            "scale": scale,
            "softcap": softcap,
            "local_window_size": window,
            "do_rotary": 0,
            **rounding,
        },
        dtypes=[query.dtype, k_cache.dtype, v_cache.dtype],
        shapes=[query.shape, k_cache.shape, v_cache.shape],
        version=1,
    )
    return attended, k_cache_out, v_cache_out


def matmul_nbits(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    bias: torch.Tensor | None,
    *,
    inputs: int,
    bits: int,
    group: int,
) -> torch.Tensor:
    """x Wᵀ + bias with W in groups of integers.

    Args:
        x: `[..., I]`.
        inputs: I; the codes' last group may hold more.
        codes: `[O, I / g, g * bits / 8]` uint8, low half first.
        scales: `[O, I / g]`.
        zero_points: `[O, ceil(I / g * bits / 8)]` uint8, None for the middle of the range.
        bias: `[O]` or None.
    """
    outputs = codes.shape[0]
    tensors: list[torch.Tensor | None] = [x, codes, scales, zero_points, None, bias]
    while tensors[-1] is None:
        tensors.pop()
    return symbolic(
        "com.microsoft::MatMulNBits",
        tensors,
        {
            "K": inputs,
            "N": outputs,
            "bits": bits,
            "block_size": group,
            "accuracy_level": INT8_ACTIVATIONS,
        },
        dtype=x.dtype,
        shape=[*x.shape[:-1], outputs],
        version=1,
    )


def expert_products(
    rows: torch.Tensor,
    sizes: torch.Tensor,
    tensors: list[torch.Tensor | None],
    *,
    outputs: int,
    bits: int,
    group: int,
) -> torch.Tensor:
    """x Wᵀ + bias with the W of each row's expert: a placeholder, see `passes/experts.py`.

    Args:
        rows: `[n, I]`, of the first of E experts first.
        sizes: `[E]` int64, rows of each.
        tensors: weight `[E, O, I]` and bias `[E, O]`, or codes, scales, zero points as for
            `matmul_nbits`, of each expert, and bias; None for what there isn't.
        outputs: O.
        bits: 0 for float32 weights.
    """
    inputs = [rows, sizes, *tensors]
    while inputs[-1] is None:
        inputs.pop()
    return symbolic(
        f"{OWN_DOMAIN}::Experts",
        inputs,
        {"bits": bits, "group": group},
        dtype=rows.dtype,
        shape=[rows.shape[0], outputs],
        version=1,
    )


def gather_block_quantized(
    codes: torch.Tensor,
    tokens: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    *,
    bits: int,
    group: int,
) -> torch.Tensor:
    """Rows of a quantized table.

    Args:
        codes: `[V, I * bits / 8]` uint8; scales `[V, I / g]`; zero_points as for `matmul_nbits`.
        tokens: `[B, T]` int64.

    Returns:
        `[B, T, I]` float32.
    """
    inputs = [codes, tokens, scales] + ([] if zero_points is None else [zero_points])
    return symbolic(
        "com.microsoft::GatherBlockQuantized",
        inputs,
        {"bits": bits, "block_size": group, "gather_axis": 0, "quantize_axis": 1},
        dtype=scales.dtype,
        shape=[*tokens.shape, codes.shape[1] * 8 // bits],
        version=1,
    )


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """x / sqrt(mean(x²) + epsilon) * weight over the last axis."""
    return symbolic(
        "::SimplifiedLayerNormalization",
        [x, weight],
        {"axis": -1, "epsilon": epsilon, "stash_type": 1},
        dtype=x.dtype,
        shape=list(x.shape),
        version=1,
    )


def softplus(x: torch.Tensor) -> torch.Tensor:
    """log(1 + e^x). PyTorch's own takes four nodes: beyond 20 it compares and gives x, the same."""
    return symbolic("::Softplus", [x], {}, dtype=x.dtype, shape=list(x.shape), version=1)


def gated_delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    state: torch.Tensor,
    decay: torch.Tensor,
    beta: torch.Tensor,
    *,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens one after the other: S = e^decay S, then S += beta k (v - S k), result scale S q.

    Args:
        query, key: `[1, T, U * I]`, keys of length 1.
        value: `[1, T, U * J]`.
        state: S `[1, U, I, J]`; all are float32.
        decay, beta: `[1, T, U]`.

    Returns:
        `[1, T, U * J]` and the new state.
    """
    inputs = [query, key, value, state, decay, beta]
    return _linear_attention(inputs, "gated_delta", scale=scale)


def decaying_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    state: torch.Tensor,
    decay: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens one after the other: S = e^decay S + k v, result S q.

    Args:
        query, key: `[1, T, U * I]`.
        value: `[1, T, U * J]`.
        state: S `[1, U, I, J]`; all are float32.
        decay: `[1, T, U]`.

    Returns:
        `[1, T, U * J]` and the new state.
    """
    return _linear_attention([query, key, value, state, decay], "gated", scale=1.0)


def _linear_attention(
    inputs: list[torch.Tensor], rule: str, *, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The operator, whose inputs begin with query, key, value and state."""
    value, state = inputs[2], inputs[3]
    heads = state.shape[1]
    result, new = symbolic_multi_out(
        "com.microsoft::LinearAttention",
        inputs,
        {"q_num_heads": heads, "kv_num_heads": heads, "scale": scale, "update_rule": rule},
        dtypes=[value.dtype, state.dtype],
        shapes=[value.shape, state.shape],
        version=1,
    )
    return result, new


def rotary(
    x: torch.Tensor,
    rows: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    heads: int,
    interleaved: bool = False,
) -> torch.Tensor:
    """RoPE of the first R dimensions of each head.

    Args:
        x: `[B, T, H * D]` or `[B, H, T, D]`.
        rows: int64 rows of the tables: of each token `[B, T]`, or of the first one `[1]`.
        cos, sin: `[rows, R / 2]`, R <= D the rotated part of a head.
        interleaved: neighbouring dimensions turn into each other, not halves.
    """
    form = int(interleaved)
    return symbolic(
        "com.microsoft::RotaryEmbedding",
        [x, rows, cos, sin],
        {"interleaved": form, "num_heads": heads, "rotary_embedding_dim": 2 * cos.shape[1]},
        dtype=x.dtype,
        shape=list(x.shape),
        version=1,
    )
