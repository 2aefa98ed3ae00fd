"""The memory read and the gate (Eq. 7-10) with half the nodes, without moving the heads.

The general code in `models.memory` (`retrieve`, `MemoryGate`) moves the heads to the front. For one
token that makes 25 small nodes per layer, as many as the rest of the layer. Here rows stay
`[T, H * D]`, everything that depends on M, z and the gates alone is computed once for all layers,
and Gemm adds the biases.

Letters: L layers, H query heads, K KV heads, R query heads per KV head, T new tokens, D head
dimension.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.memory.compressive import RETRIEVAL_EPSILON
from edgeinfinite.models.memory.gate import MemoryGate, log_positions


class Absorbed(nn.Module):
    """Replaces a gate that `FlatGates` computes; its input has already passed the gate.

    Args:
        gate: keeps its parameters in the model.
    """

    def __init__(self, gate: MemoryGate) -> None:
        super().__init__()
        self.gate = gate

    def forward(
        self,
        _query: object,
        _memory: object,
        _norm: object,
        local: torch.Tensor,
        *_: object,
    ) -> torch.Tensor:
        """Returns `local`, which is already A_com."""
        return local


class FlatGates:
    """The gates of all layers for one call.

    Args:
        gates: the gates of all layers.
        memory: M `[L, K, D, D]`.
        memory_norm: z `[L, K, D]`.
        has_memory: `[1]`.
    """

    def __init__(
        self,
        gates: list[MemoryGate],
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
        has_memory: torch.Tensor,
    ) -> None:
        self._gates = gates
        self._memory = memory.split(1)
        self._norm = memory_norm.unsqueeze(-1).split(1)
        self._has_memory = has_memory
        self._log_position: torch.Tensor | None = None
        self._shares: tuple[torch.Tensor, ...] = ()
        if gates[0].opening == "constant":  # all layers at once
            openings = torch.stack([torch.sigmoid(gate.g).flatten() for gate in gates])
            self._shares = (openings * has_memory).split(1)

    def apply(
        self, layer: int, query: torch.Tensor, local: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """A_com of one layer.

        Args:
            query: `[1, T, H * D]` after RoPE.
            local: A_dot `[1, T, H * D]`.
            positions: the tokens' slots, `[1, T]` int64.
        """
        if self._log_position is None and self._gates[0].opening == "place":  # once for all layers
            self._log_position = log_positions(positions).view(-1, 1, 1)
        gate = self._gates[layer]
        _, tokens, width = query.shape
        kv_heads, dim = self._memory[layer].shape[1:3]
        features = gate.feature_map(query.view(tokens, kv_heads, -1, dim))
        numerator = features @ self._memory[layer]
        denominator = features @ self._norm[layer] + RETRIEVAL_EPSILON
        retrieved = (numerator / denominator).view(-1, dim)
        hidden = torch.relu(torch.addmm(gate.w1.bias, retrieved, gate.w1.weight.t()))
        remembered = torch.addmm(gate.w2.bias, hidden, gate.w2.weight.t()).view(1, tokens, width)
        return local + self._share(layer, query) * (remembered - local)

    def _share(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """s of Eq. 9, `[1, T or 1, H * D]`."""
        if self._shares:
            return self._shares[layer]
        gate = self._gates[layer]
        heads, dim = gate.g.shape
        by_query = (query * gate.u.flatten()).view(-1, heads, dim).sum(-1, keepdim=True)
        openness = gate.g + by_query
        if gate.opening == "place":
            assert self._log_position is not None
            openness = openness + gate.c * self._log_position
        return (torch.sigmoid(openness) * self._has_memory).view(1, -1, heads * dim)


def absorb_gates(model: PreTrainedModel) -> list[MemoryGate]:
    """Replaces the model's gates by modules that do nothing.

    Returns:
        The gates, for `FlatGates`; empty if the model has none.
    """
    gates = []
    for layer in attention_layers(model):
        if isinstance(layer.memory_gate, MemoryGate):
            gates.append(layer.memory_gate)
            layer.memory_gate = Absorbed(layer.memory_gate)
    return gates
