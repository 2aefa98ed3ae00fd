"""The exported graphs of DESIGN §3 as small modules that own their examples and their signature.

Letters: L layers, K KV heads, T new tokens, C capacity, D head dimension, V vocabulary.

A back end supplies the operators: a `GraphState`, the `AttentionState` that the backbone meets
while its graph is traced. The modules here are what all back ends share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import (
    COMPRESS,
    DECODE,
    PREFILL,
    SUMS,
    GraphSpec,
    OutputSpec,
    TensorSpec,
    state_specs,
    tensor_spec,
    updated,
    updated_in_place,
)
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attention_layers,
    config_of,
    feature_maps,
    scored_layers,
)
from edgeinfinite.models.attention import AttentionState, run_tokens
from edgeinfinite.models.state import fold_oldest

EXAMPLE_TOKENS = 7
"""T while tracing prefill; any value of at least 2, so that nothing is specialised to T = 1."""


@dataclass
class StateTensors:
    """The state as a graph's inputs.

    Args:
        length: `[L]` int64.
        k_cache, v_cache: per layer `[1, K, C, D]` (or the back end's own layout).
        memory: M `[L, K, D, D]` float32; None without a gate.
        memory_norm: z `[L, K, D]` float32; None without a gate.
        has_memory: `[1]` float32; None without a gate.
    """

    length: torch.Tensor
    k_cache: list[torch.Tensor]
    v_cache: list[torch.Tensor]
    memory: torch.Tensor | None
    memory_norm: torch.Tensor | None
    has_memory: torch.Tensor | None


class GraphState(AttentionState, Protocol):
    """An `AttentionState` made of a back end's operators, over one graph's inputs."""

    def outputs(self) -> list[torch.Tensor]:
        """What the graph returns of the state, in the order of the back end's `OutputSpec`s."""
        ...


StateFactory = Callable[[StateTensors], GraphState]


@dataclass(frozen=True)
class ModelShape:
    """The sizes that the graphs' signatures are made of."""

    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    geometry: Geometry
    reads_memory: bool
    cache_type: str
    scored: dict[int, int]

    @classmethod
    def of(cls, model: PreTrainedModel) -> ModelShape:
        """The sizes of an attached model."""
        facts = architecture_of(model)
        return cls(
            layers=len(facts.layers),
            query_heads=facts.query_heads,
            kv_heads=facts.kv_heads,
            head_dim=facts.head_dim,
            vocabulary=facts.vocabulary,
            geometry=config_of(model).geometry,
            reads_memory=attention_layers(model)[0].memory_gate is not None,
            cache_type=config_of(model).cache_type,
            scored=scored_layers(model),
        )

    @property
    def compresses(self) -> bool:
        """Whether there is a `compress_memory`: something reads M and z, or a window moves."""
        return self.reads_memory or self.geometry.policy == "carry"

    @property
    def capacities(self) -> list[int]:
        """C of every layer."""
        return self.geometry.capacities(self.layers)

    def state(self) -> tuple[TensorSpec, ...]:
        """The state in the layout `B K C D`."""
        return state_specs(
            self.layers,
            self.kv_heads,
            self.capacities,
            self.head_dim,
            memory=self.reads_memory,
            cache_type=self.cache_type,
            scored=self.scored,
        )


def cache_outputs(state: tuple[TensorSpec, ...]) -> tuple[OutputSpec, ...]:
    """Outputs `k_cache_i_out`, `v_cache_i_out` that are bound to the caches' own buffers."""
    return tuple(updated_in_place(spec) for spec in state if spec.is_cache)


class _TokensGraph(nn.Module):
    """What prefill and decode have in common.

    Args:
        model: the attached backbone.
        new_state: makes the back end's state from the graph's inputs.
        state: the state tensors, in the order `ModelShape.state` has them.
        presents: what the back end's `GraphState.outputs` returns.
    """

    name: str

    def __init__(
        self,
        model: PreTrainedModel,
        new_state: StateFactory,
        state: tuple[TensorSpec, ...],
        presents: tuple[OutputSpec, ...],
    ) -> None:
        super().__init__()
        self.model = model
        self.shape = ModelShape.of(model)
        self._new_state = new_state
        self._state = state
        self._presents = presents

    def forward(
        self,
        tokens: torch.Tensor,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
        has_memory: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Reads T tokens of one segment.

        Args:
            tokens: `[1, T]` int64.
            length, k_cache, v_cache, memory, memory_norm, has_memory: as in `StateTensors`.

        Returns:
            Logits `[1, V]` of the last token, then `GraphState.outputs`.
        """
        given = StateTensors(length, list(k_cache), list(v_cache), memory, memory_norm, has_memory)
        state = self._new_state(given)
        logits = run_tokens(self.model, tokens, state)
        return logits[:, -1], *state.outputs()

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        tensors = {spec.name: _zeros(spec) for spec in self._state}
        layers = range(self.shape.layers)
        arguments: list[Any] = [
            torch.zeros(1, self.example_tokens, dtype=torch.int64),
            tensors["length"],
            [tensors[f"k_cache_{layer}"] for layer in layers],
            [tensors[f"v_cache_{layer}"] for layer in layers],
        ]
        if self.shape.reads_memory:
            arguments += [tensors["memory"], tensors["memory_norm"], tensors["has_memory"]]
        return tuple(arguments)

    @property
    def example_tokens(self) -> int:
        """T of `example_inputs`."""
        raise NotImplementedError

    def dynamic_shapes(self) -> tuple[Any, ...]:
        """For `torch.export`: which axes of the arguments vary."""
        layers = self.shape.layers
        memory = [None, None, None] if self.shape.reads_memory else []
        return (self._tokens_axes(), None, [None] * layers, [None] * layers, *memory)

    def _tokens_axes(self) -> Any:
        return None

    def input_names(self) -> list[str]:
        """Names of the flattened arguments of `forward`."""
        return [spec.name for spec in self._inputs()]

    def output_names(self) -> list[str]:
        """Names of what `forward` returns."""
        return ["logits", *(spec.name for spec in self._presents)]

    def spec(self, file: str) -> GraphSpec:
        """The signature as it stands in the manifest."""
        logits = OutputSpec("logits", "float32", (1, self.shape.vocabulary), "B V", "logits")
        return GraphSpec(file, self._inputs(), (logits, *self._presents))

    def _inputs(self) -> tuple[TensorSpec, ...]:
        by_name = {spec.name: spec for spec in self._state}
        caches = [spec for spec in self._state if spec.is_cache]
        memory = ["memory", "memory_norm", "has_memory"] if self.shape.reads_memory else []
        tokens = tensor_spec("tokens", "int64", (1, self._tokens_size()), "B T")
        return (tokens, by_name["length"], *caches, *(by_name[name] for name in memory))

    def _tokens_size(self) -> int | str:
        return 1


class PrefillSegment(_TokensGraph):
    """Reads 1 <= T <= N tokens; logits of the last one."""

    name = PREFILL

    @property
    def example_tokens(self) -> int:
        return EXAMPLE_TOKENS

    def _tokens_axes(self) -> Any:
        return {1: torch.export.Dim("T", min=1)}

    def _tokens_size(self) -> int | str:
        return "T"


class DecodeStep(_TokensGraph):
    """Reads one token."""

    name = DECODE

    @property
    def example_tokens(self) -> int:
        return 1


class CompressMemory(nn.Module):
    """Folds the N oldest residual tokens into M and z (policy `reencode`); float32.

    No weights but those of a learned feature map.

    Args:
        model: the attached backbone; under `reencode` it must read the memory.
        state: the state tensors, as for the other graphs.
    """

    name = COMPRESS

    def __init__(self, model: PreTrainedModel, state: tuple[TensorSpec, ...]) -> None:
        super().__init__()
        self.shape = ModelShape.of(model)
        self._state = state
        self._feature_maps = nn.ModuleList(feature_maps(model) if self.shape.reads_memory else [])

    def forward(
        self,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `models.state.fold_oldest`; at least S + N slots must be in use."""
        return self._folded(list(k_cache), list(v_cache), memory, memory_norm)

    def _folded(
        self,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
        length: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        maps: list[Any] = list(self._feature_maps)
        return fold_oldest(
            self.shape.geometry, k_cache, v_cache, memory, memory_norm, length, feature_maps=maps
        )

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        return self._example_state()

    def _example_state(self) -> tuple[Any, ...]:
        tensors = {spec.name: _zeros(spec) for spec in self._state}
        layers = range(self.shape.layers)
        return (
            [tensors[f"k_cache_{layer}"] for layer in layers],
            [tensors[f"v_cache_{layer}"] for layer in layers],
            *(tensors[spec.name] for spec in self._sums()),
        )

    def dynamic_shapes(self) -> None:
        """Every shape is fixed."""
        return

    def input_names(self) -> list[str]:
        """Names of the flattened arguments of `forward`."""
        return [spec.name for spec in self._inputs()]

    def output_names(self) -> list[str]:
        """Names of what `forward` returns."""
        return [f"{spec.name}_out" for spec in self._sums()]

    def spec(self, file: str) -> GraphSpec:
        """The signature as it stands in the manifest."""
        return GraphSpec(file, self._inputs(), tuple(updated(spec) for spec in self._sums()))

    def _inputs(self) -> tuple[TensorSpec, ...]:
        return (*(spec for spec in self._state if spec.is_cache), *self._sums())

    def _sums(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for spec in self._state if spec.role in SUMS)


def _zeros(spec: TensorSpec) -> torch.Tensor:
    sizes = [int(size) for size in spec.shape]
    return torch.zeros(sizes, dtype=getattr(torch, spec.dtype))
