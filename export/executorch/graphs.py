"""The three graphs as this back end exports them: layout, dynamic sizes, example inputs.

Letters: L layers, K KV heads, T new tokens, D head dimension, C capacity of a layer, U the number
of first slots of its caches that a call gets (length + T or more). Layers with the same capacity
have the same U.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import RECURRENT_STATE, GraphSpec, OutputSpec, TensorSpec
from edgeinfinite.export.executorch import chunks
from edgeinfinite.export.executorch.codes import nearest, numbers_of
from edgeinfinite.export.executorch.state import DecodeState, LayerKind, PrefillState, Spreading
from edgeinfinite.export.graphs.carry import CarryMemory
from edgeinfinite.export.graphs.compress import CompressMemory
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import StateTensors
from edgeinfinite.export.graphs.tokens import EXAMPLE_TOKENS, DecodeStep, PrefillSegment
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import cache_scales_of
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.models.int8_cache.scales import (
    Cache,
    CacheScales,
    ScaledCache,
    as_numbers,
    in_steps,
)

Spec = TypeVar("Spec", TensorSpec, OutputSpec)

MAX_TOKENS = 512
"""The largest T of a prefill call, if no capacity is smaller; the program plans memory for it.
Delta rules and SSMs go over fewer, in chunks."""

_EXAMPLE_SLOTS = EXAMPLE_TOKENS + 4
"""U while tracing. It differs from EXAMPLE_TOKENS, so that tracing keeps the two sizes apart."""


def state_of(shape: ModelShape) -> tuple[TensorSpec, ...]:
    """The state in this back end's layout: caches are `[1, C, K, D]`."""
    return tuple(_slots_first(spec) if spec.is_cache else spec for spec in shape.state())


class ExecuTorchPrefill(PrefillSegment):
    """Reads T tokens, 2 <= T <= `max_tokens`. It gets the first U slots of every cache."""

    def __init__(self, model: PreTrainedModel, state: tuple[TensorSpec, ...]) -> None:
        kinds, longest = _kinds_of(model), ModelShape.of(model).geometry.longest_layer
        scales = cache_scales_of(model)
        super().__init__(
            model, lambda given: PrefillState(given, kinds, longest, scales), state, ()
        )

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        return _with_used_slots(super().example_inputs(), _kinds_of(self.model))

    def dynamic_shapes(self) -> tuple[Any, ...]:
        """T of the tokens, U of the caches."""
        _, length, _, _, *others = super().dynamic_shapes()
        tokens = {1: torch.export.Dim("T", min=2, max=max_tokens(self.shape))}
        return (tokens, length, *_used_axes(_kinds_of(self.model)), *others)

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature for the manifest; its caches have `U` slots."""
        return _with_used_specs(super().spec(file))


class ExecuTorchDecode(DecodeStep):
    """Reads one token. Like prefill, it gets the first U slots of every cache."""

    def __init__(self, model: PreTrainedModel, state: tuple[TensorSpec, ...]) -> None:
        super().__init__(model, self._state_over, state, ())
        every = [self.shape.heads_of(layer) for layer in range(self.shape.layers)]
        self._numbers = {heads: number for number, heads in enumerate(dict.fromkeys(every))}
        self._heads = every
        for (kv_heads, dim), number in self._numbers.items():
            own = torch.eye(kv_heads).repeat_interleave(self.shape.query_heads // kv_heads, 0)
            spread = torch.eye(dim).repeat(kv_heads, 1)
            blocks = own.repeat_interleave(dim, 1)
            constants = Spreading(blocks, spread, spread.t().contiguous())
            for name, constant in zip(_spreading_names(number), constants, strict=True):
                self.register_buffer(name, constant, persistent=False)

    def _state_over(self, given: StateTensors) -> DecodeState:
        by_heads = {
            heads: Spreading(*map(self.get_buffer, _spreading_names(number)))
            for heads, number in self._numbers.items()
        }
        spreading = [by_heads[heads] for heads in self._heads]
        longest = self.shape.geometry.longest_layer
        scales = cache_scales_of(self.model)
        return DecodeState(given, _kinds_of(self.model), longest, scales, spreading)

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        return _with_used_slots(super().example_inputs(), _kinds_of(self.model))

    def dynamic_shapes(self) -> tuple[Any, ...]:
        """U of the caches."""
        tokens, length, _, _, *others = super().dynamic_shapes()
        return (tokens, length, *_used_axes(_kinds_of(self.model)), *others)

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature for the manifest; its caches have `U` slots."""
        return _with_used_specs(super().spec(file))


class ExecuTorchCompress(CompressMemory):
    """Folds the N oldest residual tokens, cache by cache, in XNNPACK's operators."""

    ones: torch.Tensor

    def __init__(self, model: PreTrainedModel, state: tuple[TensorSpec, ...]) -> None:
        super().__init__(model, state)
        shape = self.shape
        ones = torch.ones(shape.kv_heads, 1, shape.geometry.segment_length)
        self.register_buffer("ones", ones, persistent=False)

    def forward(
        self,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        memory: torch.Tensor,
        memory_norm: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `models.state.fold_oldest`; caches `[1, C, K, D]`."""
        geometry = self.shape.geometry
        begin, count = geometry.sink_length, geometry.segment_length
        kv_heads, dim = self.shape.kv_heads, self.shape.head_dim
        sums, norms = [], []
        scales = self._scale_of_each_layer()
        maps: list[Any] = list(self._feature_maps)
        for index, feature_map in enumerate(maps):
            key, value = (
                numbers_of(cache[index].narrow(1, begin, count))
                .reshape(count, kv_heads, dim)
                .transpose(0, 1)
                for cache in (k_cache, v_cache)
            )
            if (scale := scales[index]) is not None:
                key, value = key * scale.key.unsqueeze(1), value * scale.value.unsqueeze(1)
            features = feature_map(key)
            summed = torch.bmm(features.transpose(1, 2), value)
            sums.append(summed.reshape(1, kv_heads, dim, dim))
            norms.append(torch.bmm(self.ones, features).reshape(1, kv_heads, dim))
        return memory + torch.cat(sums), memory_norm + torch.cat(norms)


class ExecuTorchCarry(CarryMemory):
    """Policy `carry` on caches `[1, C, K, D]`; recall slots and window come back in that layout."""

    def forward(  # type: ignore[override]
        self,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        scores: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """See `CarryMemory.forward`. Codes of an int8 cache are float32 but in inputs and results:
        XNNPACK moves them several times as fast as ExecuTorch's own kernels move bytes.
        """
        keys = [numbers_of(cache).transpose(1, 2) for cache in k_cache]
        values = [numbers_of(cache).transpose(1, 2) for cache in v_cache]
        outputs = super().forward(length, keys, values, scores, memory, memory_norm)
        updated = len(self._sums()) + len(scores)
        carried = [part.transpose(1, 2) for part in outputs[updated:]]
        if self.shape.cache_type == INT8_CACHE:
            carried = [nearest(part) for part in carried]
        return (*outputs[:updated], *carried)

    def _as_cached(
        self, key: torch.Tensor, value: Cache, scale: CacheScales | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V in steps of the caches, float32; `forward` rounds them."""
        if scale is None:
            return key, as_numbers(value)
        steps = value.codes if isinstance(value, ScaledCache) else in_steps(value, scale.value)
        return in_steps(key, scale.key), steps

    def _carried_outputs(self) -> tuple[OutputSpec, ...]:
        return tuple(
            spec if spec.updates else _slots_first(spec) for spec in super()._carried_outputs()
        )


Graph = ExecuTorchPrefill | ExecuTorchDecode | ExecuTorchCompress | ExecuTorchCarry


def max_tokens(shape: ModelShape) -> int:
    """T of the largest prefill call."""
    in_chunks = any(kept.role == RECURRENT_STATE for kept in shape.recurrent)
    return min(chunks.MOST_TOKENS if in_chunks else MAX_TOKENS, *shape.capacities)


def graphs_of(model: PreTrainedModel, state: tuple[TensorSpec, ...]) -> list[Graph]:
    """The modules to export. Without a gate nothing reads the memory, so it isn't computed."""
    shape = ModelShape.of(model)
    graphs: list[Graph] = [ExecuTorchPrefill(model, state), ExecuTorchDecode(model, state)]
    if shape.geometry.policy == "carry":
        graphs.append(ExecuTorchCarry(model, state))
    elif shape.reads_memory:
        graphs.append(ExecuTorchCompress(model, state))
    return graphs


def _spreading_names(number: int) -> list[str]:
    """Of the buffers for the layers with some heads; the first have no number."""
    return [f"{name}_{number}" if number else name for name in Spreading._fields]


def _kinds_of(model: PreTrainedModel) -> list[LayerKind]:
    windows = architecture_of(model).sliding_windows
    return list(map(LayerKind, ModelShape.of(model).capacities, windows))


def _with_used_slots(arguments: tuple[Any, ...], kinds: list[LayerKind]) -> tuple[Any, ...]:
    """Example arguments whose caches have only their first slots."""
    tokens, length, k_cache, v_cache, *memory = arguments
    # A different U for each kind of layer, so that tracing keeps all sizes apart.
    slots = {
        kind: min(_EXAMPLE_SLOTS + i, kind.capacity) for i, kind in enumerate(sorted(set(kinds)))
    }
    used = (
        [cache[:, : slots[kind]].contiguous() for cache, kind in zip(part, kinds, strict=True)]
        for part in (k_cache, v_cache)
    )
    return (tokens, length, *used, *memory)


def _used_axes(kinds: list[LayerKind]) -> tuple[Any, Any]:
    """The dynamic axis U of the key caches and of the value caches."""
    axes = {kind: {1: _used_slots(kind)} for kind in set(kinds)}
    used = [axes[kind] for kind in kinds]
    return used, used


def _used_slots(kind: LayerKind) -> Any:
    name = f"U_{kind.capacity}_{kind.window}" if kind.window else f"U_{kind.capacity}"
    return torch.export.Dim(name, min=1, max=kind.capacity)


def _with_used_specs(whole: GraphSpec) -> GraphSpec:
    inputs = tuple(
        dataclasses.replace(spec, shape=(1, "U", *spec.shape[2:])) if spec.is_cache else spec
        for spec in whole.inputs
    )
    return dataclasses.replace(whole, inputs=inputs)


def _slots_first(spec: Spec) -> Spec:
    """The layout `B K C D` (or G, W in place of C) as `B C K D`."""
    batch, kv_heads, slots, dim = spec.shape
    names = spec.dims.split()
    dims = " ".join([names[0], names[2], names[1], names[3]])
    return dataclasses.replace(spec, shape=(batch, slots, kv_heads, dim), dims=dims)
