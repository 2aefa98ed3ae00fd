"""The compressive memory of one layer (EdgeInfinite, arXiv 2503.22196, Eq. 5-7).

Letters: B batch, H query heads, K KV heads, T reading tokens, N tokens to compress, D head
dimension. M is `memory [K, D, D]`, z is `memory_norm [K, D]`, both always float32, because they are
sums over any number of tokens. Q and K are taken after RoPE, as in the equations.
"""

from __future__ import annotations

import torch

from edgeinfinite.models.memory.feature_map import FeatureMap

RETRIEVAL_EPSILON = 1e-6
"""Added to the denominator of a retrieval, so that an empty memory reads as zero, not 0/0."""


_PAPERS = FeatureMap()


def retrieve(
    query: torch.Tensor,
    memory: torch.Tensor,
    memory_norm: torch.Tensor,
    feature_map: FeatureMap = _PAPERS,
) -> torch.Tensor:
    """Reads the memory: A_mem = σ(Q) M / (σ(Q) z + ε), Eq. 7.

    Query heads read the memory of their KV head, grouped as in transformers' `repeat_kv`: query
    head h belongs to KV head h // (H / K).

    Args:
        query: `[B, H, T, D]` after RoPE, any float dtype.
        memory: M, `[K, D, D]` float32, of the tokens compressed so far.
        memory_norm: z, `[K, D]` float32.
        feature_map: σ.

    Returns:
        A_mem `[B, H, T, D]` float32; zero where the memory is empty.
    """
    batch, heads, tokens, dim = query.shape
    kv_heads = memory.shape[0]
    # The heads of one KV head are stacked along T: one product per KV head, nothing repeated.
    features = feature_map(query.float().reshape(batch, kv_heads, -1, dim))
    numerator = features @ memory
    denominator = features @ memory_norm.unsqueeze(-1) + RETRIEVAL_EPSILON
    return (numerator / denominator).reshape(batch, heads, tokens, dim)


def compress(
    key: torch.Tensor,
    value: torch.Tensor,
    memory: torch.Tensor,
    memory_norm: torch.Tensor,
    feature_map: FeatureMap = _PAPERS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Adds a segment to the memory: M + σ(K)ᵀ V and z + Σ σ(K), Eq. 5 and 6.

    Args:
        key: `[K, N, D]` after RoPE, any float dtype.
        value: `[K, N, D]`.
        memory: the old M, `[K, D, D]` float32.
        memory_norm: the old z, `[K, D]` float32.
        feature_map: σ.

    Returns:
        The new M `[K, D, D]` and z `[K, D]`, float32; the arguments aren't changed.
    """
    features = feature_map(key.float())
    # z is computed as one more column of M, with a value of ones. Then a graph over all layers
    # needs intermediate memory for only one layer.
    ones = torch.ones(*value.shape[:-1], 1)
    sums = features.transpose(-1, -2) @ torch.cat((value.float(), ones.to(value.device)), dim=-1)
    return memory + sums[..., :-1], memory_norm + sums[..., -1]
