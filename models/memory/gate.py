"""The memory gate (EdgeInfinite, arXiv 2503.22196, Eq. 8-9): the part that the paper trains.

Policy `reencode` reads the memory through the gate. Policy `carry` has no gate unless one is given;
it uses a retention scorer instead (`models.recall.scorer`). Letters: B batch, H query heads, T
tokens, D head dimension, r rank of the gate.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from edgeinfinite.models.configuration import OPENINGS, check_choice
from edgeinfinite.models.memory.compressive import retrieve
from edgeinfinite.models.memory.feature_map import FeatureMap

INITIAL_OPENING = -4.0
"""g at the start: sig(-4) = 0.018, so an untrained gate hardly changes the base model."""

IDENTITY_OPENING = -3.0
"""g of a gate that starts with Ã = A_mem. Larger: the memory is useful from the start."""

_IDENTITY_BIAS = 1.0
"""Above the mean size of values (0.2 to 0.7 in SmolLM2), so the ReLU cuts off hardly any unit. With
a much larger bias, a small step of W2 would change the constant part of Ã a lot."""

LOG_POSITION_UNIT = 1024.0
"""The number of visible tokens v at which p = 0, so g and u alone decide there, in any geometry."""

GATE_SHARE = 0.0015
"""Size of all gates together as a share of the backbone's parameters."""


class MemoryGate(nn.Module):
    """Blends what the memory remembers into what local attention found, in one layer.

    Ã = W2 relu(W1 A_mem + b1) + b2 (Eq. 8, shared by the heads),
    A_com = s ⊙ Ã + (1 - s) ⊙ A_dot (Eq. 9). In the paper s = sig(g), g of shape `[H, D]`, the same
    for every token. With the opening `query`, s = sig(g + u·q), u of shape `[H, D]`: in full
    attention the query decides how much weight goes to near and to far tokens. With the opening
    `place`, s = sig(g + u·q + c p), c of shape `[H, 1]`, p = log(1024 / v) for a token that sees v
    tokens (see `log_positions`): the larger v is, the smaller the share of the far tokens.

    Args:
        heads: H.
        head_dim: D.
        rank: r.
        feature_map: σ of the memory; None is the paper's.
        opening: `constant` (the paper), `query` or `place`.

    Raises:
        EdgeInfiniteError: the opening is unknown.
    """

    def __init__(
        self,
        heads: int,
        head_dim: int,
        rank: int,
        feature_map: FeatureMap | None = None,
        opening: str = "constant",
    ) -> None:
        super().__init__()
        check_choice("opening", opening, OPENINGS)
        self.feature_map = feature_map or FeatureMap()
        self.opening = opening
        self.w1 = nn.Linear(head_dim, rank)
        self.w2 = nn.Linear(rank, head_dim)
        self.g = nn.Parameter(torch.full((heads, head_dim), INITIAL_OPENING))
        if opening != "constant":
            self.u = nn.Parameter(torch.zeros(heads, head_dim))
        if opening == "place":
            self.c = nn.Parameter(torch.zeros(heads, 1))
        nn.init.normal_(self.w2.weight, std=0.01)
        nn.init.zeros_(self.w2.bias)

    @torch.no_grad()
    def begin_with_identity(self) -> None:
        """Sets Ã = A_mem, or its projection on r random directions if r < D.

        Eq. 8 can express the identity: with W1 = W2ᵀ orthogonal and a bias c that keeps every unit
        above zero, W2 relu(W1 x + c) - W2 c = x. From small weights, training would first have to
        learn that A_mem looks like the output of local attention (Infini-attention blends A_mem
        itself). The directions come from torch's random state.
        """
        nn.init.orthogonal_(self.w1.weight)
        self.w1.bias.fill_(_IDENTITY_BIAS)
        self.w2.weight.copy_(self.w1.weight.T)
        self.w2.bias.copy_(-_IDENTITY_BIAS * self.w1.weight.sum(0))
        self.g.fill_(IDENTITY_OPENING)

    def forward(
        self,
        query: torch.Tensor,
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
        local: torch.Tensor,
        has_memory: torch.Tensor,
        log_position: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Eq. 7-10.

        Args:
            query: `[B, H, T, D]` after RoPE, any float dtype.
            memory: M, `[K, D, D]` float32.
            memory_norm: z, `[K, D]` float32.
            local: A_dot `[B, H, T, D]`, any float dtype.
            has_memory: 0 or 1, float, `[1]`; at 0 the result is `local` exactly (Eq. 10).
            log_position: p of the tokens, `[T]` float32 (see `log_positions`); only the opening
                `place` needs it.

        Returns:
            A_com `[B, H, T, D]` in `local`'s dtype.
        """
        retrieved = retrieve(query, memory, memory_norm, self.feature_map)
        return self.blend(query, retrieved, local, has_memory, log_position)

    def blend(
        self,
        query: torch.Tensor,
        retrieved: torch.Tensor,
        local: torch.Tensor,
        has_memory: torch.Tensor,
        log_position: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Eq. 8-10 with A_mem `[B, H, T, D]` float32; the other arguments as for `forward`."""
        remembered = self.w2(torch.relu(self.w1(retrieved))).to(local.dtype)
        # Eq. 9 as A_dot + s (Ã - A_dot): with s = 0 it is A_dot to the last bit.
        share = (self.share(query, log_position) * has_memory).to(local.dtype)
        return local + share * (remembered - local)

    def share(self, query: torch.Tensor, log_position: torch.Tensor | None = None) -> torch.Tensor:
        """s of Eq. 9, float32 `[H, 1, D]`, or `[B, H, T, D]` if it depends on the query."""
        openness = self.g.unsqueeze(1)
        if self.opening != "constant":
            openness = openness + query.float() @ self.u.unsqueeze(-1)
        if self.opening == "place":
            assert log_position is not None
            openness = openness + self.c.unsqueeze(1) * log_position.unsqueeze(-1)
        return torch.sigmoid(openness)


def log_positions(positions: torch.Tensor) -> torch.Tensor:
    """p = log(1024 / v) of tokens that see v slots of the cache, including their own.

    Full attention splits its weight between near and far tokens by their sums of exp(score). The
    sum over v near tokens grows about as v, so the logit of the far tokens' share falls by log v.

    Args:
        positions: the tokens' slots, `[T]` int64.

    Returns:
        `[T]` float32; fewer visible slots give a larger p.
    """
    return math.log(LOG_POSITION_UNIT) - torch.log(positions.float() + 1.0)


def default_rank(backbone_parameters: int, layers: int, heads: int, head_dim: int) -> int:
    """The rank r at which all gates together have about `GATE_SHARE` of the backbone.

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
