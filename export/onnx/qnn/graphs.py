"""The three graphs as the HTP takes them: fixed shapes, and keys with the slots last.

Letters: L layers, K KV heads, T new tokens, D head dimension, C capacity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import (
    NEW_PARTS,
    OutputSpec,
    TensorSpec,
    tensor_name,
    tensor_spec,
)
from edgeinfinite.export.graphs.carry import CarryMemory
from edgeinfinite.export.graphs.compress import CompressMemory
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import StateFactory
from edgeinfinite.export.graphs.tokens import DecodeStep, PrefillSegment
from edgeinfinite.export.onnx.passes.rotary import FusedRotaryTable
from edgeinfinite.export.onnx.qnn.passes import NewestRow

Spec = TypeVar("Spec", TensorSpec, OutputSpec)

TOKENS = 128
"""T of prefill; a shorter chunk is filled up, and `count` says how many of its tokens count."""

_KEYS = ("k_cache", "k_recall", "k_window", "k_new")


def state_of(shape: ModelShape) -> tuple[TensorSpec, ...]:
    """The state with K caches `[1, K, D, C]`: MatMul reads keys as they are, nothing is moved."""
    return tuple(slots_last(spec) for spec in shape.state())


def slots_last(spec: Spec) -> Spec:
    """Keys in the layout `B K D C` (or G, W, T in place of C); other tensors as they are."""
    if spec.role not in _KEYS:
        return spec
    batch, kv_heads, slots, dim = spec.shape
    first, second, slot, last = spec.dims.split()
    dims = f"{first} {second} {last} {slot}"
    return dataclasses.replace(spec, shape=(batch, kv_heads, dim, slots), dims=dims)


def new_outputs(shape: ModelShape, tokens: int) -> tuple[OutputSpec, ...]:
    """K of the new tokens of all layers `[1, K, D, T]`, then V `[1, K, T, D]`; the host writes."""
    return tuple(
        slots_last(
            OutputSpec(
                tensor_name(role, layer),
                shape.cache_type,
                (1, shape.kv_heads, tokens, shape.head_dim),
                "B K T D",
                role,
                layer,
            )
        )
        for role in NEW_PARTS
        for layer in range(shape.layers)
    )


class QnnPrefill(PrefillSegment):
    """Reads T tokens, of which the first `count` are the text's; logits of the last of those.

    Tokens after them stand later, so none of the text's tokens attends to them, and the host
    doesn't write their K and V anywhere.

    Args:
        model, new_state: as for `PrefillSegment`; its passes have been applied.
        tokens: T.
        newest: told which row is the last token's.
    """

    def __init__(
        self, model: PreTrainedModel, new_state: StateFactory, tokens: int, newest: NewestRow
    ) -> None:
        shape = ModelShape.of(model)
        super().__init__(model, new_state, state_of(shape), new_outputs(shape, tokens))
        self._tokens, self._newest = tokens, newest

    def forward(  # type: ignore[override]
        self,
        tokens: torch.Tensor,
        length: torch.Tensor,
        count: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        recurrent: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
        has_memory: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """See `PrefillSegment.forward`; count `[1]` int64."""
        self._newest.index = count.to(torch.int32) - 1
        sums = memory, memory_norm, has_memory
        return super().forward(tokens, length, k_cache, v_cache, recurrent, *sums)

    @property
    def example_tokens(self) -> int:
        return self._tokens

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        tokens, length, *rest = super().example_inputs()
        return (tokens, length, torch.ones(1, dtype=torch.int64), *rest)

    def dynamic_shapes(self) -> None:  # type: ignore[override]
        """Every shape is fixed."""
        return

    def _tokens_size(self) -> int:
        return self._tokens

    def _inputs(self) -> tuple[TensorSpec, ...]:
        tokens, length, *rest = super()._inputs()
        return (tokens, length, tensor_spec("count", "int64", (1,), "1"), *rest)


class QnnDecode(DecodeStep):
    """Reads one token."""

    def __init__(self, model: PreTrainedModel, new_state: StateFactory) -> None:
        shape = ModelShape.of(model)
        super().__init__(model, new_state, state_of(shape), new_outputs(shape, 1))

    def dynamic_shapes(self) -> None:  # type: ignore[override]
        """Every shape is fixed."""
        return


class QnnCompress(CompressMemory):
    """`compress_memory` under policy `reencode`, on keys `[1, K, D, C]`; runs on the CPU."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model, state_of(ModelShape.of(model)))

    def forward(
        self,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `CompressMemory.forward`."""
        return super().forward(_turned(k_cache), list(v_cache), memory, memory_norm)


class QnnCarry(CarryMemory):
    """`compress_memory` under policy `carry`, on keys `[1, K, D, C]`; runs on the CPU."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model, state_of(ModelShape.of(model)), FusedRotaryTable)

    def forward(  # type: ignore[override]
        self,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        scores: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """See `CarryMemory.forward`."""
        keys, values = _turned(k_cache), list(v_cache)
        outputs = super().forward(length, keys, values, scores, memory, memory_norm)
        specs = self._carried_outputs()
        return tuple(
            out.transpose(2, 3) if spec.role in _KEYS else out
            for out, spec in zip(outputs, specs, strict=True)
        )

    def _carried_outputs(self) -> tuple[OutputSpec, ...]:
        return tuple(slots_last(spec) for spec in super()._carried_outputs())


def compress_graph(model: PreTrainedModel) -> QnnCompress | QnnCarry | None:
    """The graph for the model's policy; None where there is nothing to compute."""
    shape = ModelShape.of(model)
    if not shape.compresses:
        return None
    return QnnCarry(model) if shape.geometry.policy == "carry" else QnnCompress(model)


def _turned(keys: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [cache.transpose(2, 3) for cache in keys]
