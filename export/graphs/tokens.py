"""`prefill_segment` and `decode_step` run tokens through the backbone and cache their K and V.

Letters: L layers, K KV heads, T new tokens, C capacity, D head dimension, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import (
    DECODE,
    PREFILL,
    RECURRENT,
    GraphSpec,
    OutputSpec,
    TensorSpec,
    tensor_spec,
    updated,
)
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import StateFactory, StateTensors, example
from edgeinfinite.models.attention.interface import run_tokens

EXAMPLE_TOKENS = 7
"""T while tracing prefill. Any value above 1 works; 1 would specialise the graph to T = 1."""


class _TokensGraph(nn.Module):
    """What prefill and decode have in common.

    Args:
        model: the attached backbone.
        new_state: makes the back end's state from the graph's inputs.
        state: the state tensors, in the order `ModelShape.state` has them.
        presents: specs of what the back end's `GraphState.outputs` returns.
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
        self._recurrent = tuple(spec for spec in state if spec.role in RECURRENT)
        self._presents = (*presents, *(updated(spec) for spec in self._recurrent))

    def forward(
        self,
        tokens: torch.Tensor,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        recurrent: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
        has_memory: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Reads T tokens of one segment.

        Args:
            tokens: `[1, T]` int64.
            length, k_cache, v_cache, recurrent: as in `StateTensors`.
            memory, memory_norm, has_memory: likewise.

        Returns:
            Logits `[1, V]` of the last token, `GraphState.outputs`, then the new `recurrent`.
        """
        sums = memory, memory_norm, has_memory
        given = StateTensors(length, list(k_cache), list(v_cache), *sums, list(recurrent))
        state = self._new_state(given)
        logits = run_tokens(self.model, tokens, state)
        return logits[:, -1], *state.outputs(), *state.recurrent

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        tensors = {spec.name: example(spec) for spec in self._state}
        layers = range(self.shape.layers)
        arguments: list[Any] = [
            torch.zeros(1, self.example_tokens, dtype=torch.int64),
            tensors["length"],
            [tensors[f"k_cache_{layer}"] for layer in layers],
            [tensors[f"v_cache_{layer}"] for layer in layers],
            [tensors[spec.name] for spec in self._recurrent],
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
        caches = [None] * layers, [None] * layers, [None] * len(self._recurrent)
        return (self._tokens_axes(), None, *caches, *memory)

    def _tokens_axes(self) -> Any:
        return None

    def input_names(self) -> list[str]:
        """Names of the flattened arguments of `forward`."""
        return [spec.name for spec in self._inputs()]

    def output_names(self) -> list[str]:
        """Names of the outputs of `forward`."""
        return ["logits", *(spec.name for spec in self._presents)]

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature for the manifest."""
        logits = OutputSpec("logits", "float32", (1, self.shape.vocabulary), "B V", "logits")
        return GraphSpec(file, self._inputs(), (logits, *self._presents))

    def _inputs(self) -> tuple[TensorSpec, ...]:
        by_name = {spec.name: spec for spec in self._state}
        caches = [spec for spec in self._state if spec.is_cache]
        memory = ["memory", "memory_norm", "has_memory"] if self.shape.reads_memory else []
        tokens = tensor_spec("tokens", "int64", (1, self._tokens_size()), "B T")
        held = (*caches, *self._recurrent)
        return (tokens, by_name["length"], *held, *(by_name[name] for name in memory))

    def _tokens_size(self) -> int | str:
        return 1


class PrefillSegment(_TokensGraph):
    """Reads T tokens, 1 <= T <= N; returns the logits of the last one."""

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
