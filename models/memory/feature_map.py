"""σ: the features of keys and queries that write and read the compressive memory (Eq. 5-7).

The paper takes ELU(x) + 1. Its features are nearly the same for all keys, so a read returns nearly
the mean of all values. With a softmax over the D features, each feature is a soft cluster of keys,
and its row of M is the sum of their values. The learned map puts a linear map per KV head before
the softmax (Hedgehog, arXiv 2402.04347; LoLCATs, 2410.10254). M stays [D, D].

Letters: K KV heads, n rows, D head dimension.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from edgeinfinite.models.configuration import FEATURE_MAPS, check_choice


def elu_features(x: torch.Tensor) -> torch.Tensor:
    """σ(x) = ELU(x) + 1, elementwise and positive; keeps the dtype."""
    return functional.elu(x) + 1.0


class FeatureMap(nn.Module):
    """σ of one layer, the same for queries and keys; positive, finite for any finite input.

    Args:
        name: `elu` (the paper), `softmax` (over the D dimensions), or `learned`: a softmax of
            x W + b, W `[K, D, D]` and b `[K, 1, D]`. At the start W is the identity and b zero,
            which is `softmax`.
        kv_heads: K.
        head_dim: D.

    Raises:
        EdgeInfiniteError: the name is unknown.
    """

    def __init__(self, name: str = "elu", kv_heads: int = 1, head_dim: int = 1) -> None:
        super().__init__()
        check_choice("feature map", name, FEATURE_MAPS)
        self.name, self.kv_heads = name, kv_heads
        if name == "learned":
            self.weight = nn.Parameter(torch.eye(head_dim).repeat(kv_heads, 1, 1))
            self.bias = nn.Parameter(torch.zeros(kv_heads, 1, head_dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """σ of keys, or of the queries of a KV head: `[..., K, n, D]` to the same shape."""
        if self.name == "elu":
            return elu_features(x)
        if self.name == "learned":
            product = torch.bmm if x.dim() == 3 else torch.matmul  # no needless broadcasting
            x = product(x, self.weight) + self.bias
        return x.softmax(-1)  # can't overflow: it subtracts the largest
