"""`compress_memory` under policy `reencode` folds the N oldest residual tokens into M and z.

Letters: L layers, S sinks, N segment, K KV heads, C capacity, D head dimension.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import COMPRESS, SUMS, GraphSpec, TensorSpec, updated
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import example
from edgeinfinite.models.attach import cache_scales_of, feature_maps
from edgeinfinite.models.int8_cache.scales import scaled_caches
from edgeinfinite.models.state import fold_oldest


class CompressMemory(nn.Module):
    """Folds the N oldest residual tokens into M and z (policy `reencode`), in float32.

    Its only weights are those of a learned feature map.

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
        self._scales = nn.ModuleList(s for s in cache_scales_of(model) if s is not None)

    def _scale_of_each_layer(self) -> list[Any]:
        """The scales of an int8 cache; None in every layer for another one."""
        return list(self._scales) or [None] * self.shape.layers

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
        keys, values = scaled_caches(k_cache, v_cache, self._scale_of_each_layer())
        return fold_oldest(
            self.shape.geometry, keys, values, memory, memory_norm, length, feature_maps=maps
        )

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing."""
        return self._example_state()

    def _example_state(self) -> tuple[Any, ...]:
        tensors = {spec.name: example(spec) for spec in self._state}
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
        """Names of the outputs of `forward`."""
        return [f"{spec.name}_out" for spec in self._sums()]

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature for the manifest."""
        return GraphSpec(file, self._inputs(), tuple(updated(spec) for spec in self._sums()))

    def _inputs(self) -> tuple[TensorSpec, ...]:
        return (*(spec for spec in self._state if spec.is_cache), *self._sums())

    def _sums(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for spec in self._state if spec.role in SUMS)
