"""The memory gate, the only trained part (EdgeInfinite, arXiv 2503.22196, Eq. 8-9; DESIGN §2.3).

Letters: B batch, H query heads, T tokens, D head dimension, r rank of the gate.
"""

from __future__ import annotations

import torch
from torch import nn

INITIAL_OPENING = -4.0
"""g at the start: sig(-4) = 0.018, so an untrained gate leaves the base model nearly as it is."""

GATE_SHARE = 0.0015
"""Size of all gates together as a share of the backbone's parameters."""


class MemoryGate(nn.Module):
    """Blends what the memory remembers into what local attention found, in one layer.

    Ã = W2 relu(W1 A_mem + b1) + b2 (Eq. 8, shared by the heads),
    A_com = sig(g) ⊙ Ã + (1 - sig(g)) ⊙ A_dot (Eq. 9), g of shape `[H, D]`.

    Args:
        heads: H.
        head_dim: D.
        rank: r.
    """

    def __init__(self, heads: int, head_dim: int, rank: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(head_dim, rank)
        self.w2 = nn.Linear(rank, head_dim)
        self.g = nn.Parameter(torch.full((heads, head_dim), INITIAL_OPENING))
        nn.init.normal_(self.w2.weight, std=0.01)
        nn.init.zeros_(self.w2.bias)

    def forward(
        self, retrieved: torch.Tensor, local: torch.Tensor, has_memory: torch.Tensor
    ) -> torch.Tensor:
        """Eq. 8-10.

        Args:
            retrieved: A_mem `[B, H, T, D]` float32.
            local: A_dot `[B, H, T, D]`, any float dtype.
            has_memory: 0 or 1, float, `[1]`; at 0 the result is `local` exactly (Eq. 10).

        Returns:
            A_com `[B, H, T, D]` in `local`'s dtype.
        """
        remembered = self.w2(torch.relu(self.w1(retrieved))).to(local.dtype)
        # Eq. 9 as A_dot + s (Ã - A_dot): with s = 0 it is A_dot to the last bit.
        opening = (torch.sigmoid(self.g) * has_memory).to(local.dtype).unsqueeze(1)
        return local + opening * (remembered - local)


def default_rank(backbone_parameters: int, layers: int, heads: int, head_dim: int) -> int:
    """R for which all gates together are about `GATE_SHARE` of the backbone.

    Args:
        backbone_parameters: number of parameters of the frozen model (tied ones counted once).
        layers: number of attention layers, each with a gate of its own.
        heads: H.
        head_dim: D.

    Returns:
        A multiple of 16, at least 16 (SmolLM2-135M: 48, 204,960 parameters in all).
    """
    per_layer = GATE_SHARE * backbone_parameters / layers - heads * head_dim - head_dim
    return max(16, 16 * round(per_layer / (2 * head_dim + 1) / 16))
