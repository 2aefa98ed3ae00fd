"""The state inside a graph: its tensors as inputs, and the interface of attention over them.

Letters: L layers, K KV heads, C capacity, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from edgeinfinite.artifact.tensors import OutputSpec, TensorSpec, updated_in_place
from edgeinfinite.models.attention.interface import RecurrentState


@dataclass
class StateTensors:
    """The state as a graph's inputs.

    Args:
        length: `[L]` int64.
        k_cache, v_cache: per layer `[1, K, C, D]` (or the back end's own layout).
        memory: M `[L, K, D, D]` float32; None without a gate.
        memory_norm: z `[L, K, D]` float32; None without a gate.
        has_memory: `[1]` float32; None without a gate.
        recurrent: what layers keep beside caches, in order.
    """

    length: torch.Tensor
    k_cache: list[torch.Tensor]
    v_cache: list[torch.Tensor]
    memory: torch.Tensor | None
    memory_norm: torch.Tensor | None
    has_memory: torch.Tensor | None
    recurrent: list[torch.Tensor] = field(default_factory=list)


class GraphState(RecurrentState, Protocol):
    """A `RecurrentState` in a back end's operators, over one graph's inputs."""

    def outputs(self) -> list[torch.Tensor]:
        """The state tensors that the graph returns, in the order of the `OutputSpec`s."""
        ...


StateFactory = Callable[[StateTensors], GraphState]


def cache_outputs(state: tuple[TensorSpec, ...]) -> tuple[OutputSpec, ...]:
    """Outputs `k_cache_i_out`, `v_cache_i_out` that are bound to the caches' own buffers."""
    return tuple(updated_in_place(spec) for spec in state if spec.is_cache)


def example(spec: TensorSpec) -> torch.Tensor:
    """Zeros of a state tensor's shape and type, to trace with."""
    sizes = [int(size) for size in spec.shape]
    return torch.zeros(sizes, dtype=getattr(torch, spec.dtype))
