"""`compress_memory` under policy `carry` computes M, z, the recall slots and the moved window.

Letters: L layers, S sinks, G recall slots, N segment, W window, K KV heads, D head dimension.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import (
    RECALL_PARTS,
    SCORES,
    WINDOW_PARTS,
    GraphSpec,
    OutputSpec,
    TensorSpec,
    tensor_name,
    updated,
)
from edgeinfinite.export.graphs.compress import CompressMemory
from edgeinfinite.models.attach import attention_layers, rank_rule_of
from edgeinfinite.models.int8_cache.scales import (
    Cache,
    CacheScales,
    ScaledCache,
    as_numbers,
    rounded,
    scaled_caches,
)
from edgeinfinite.models.recall.carry import carry
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.rotary import RotaryTable


class CarryMemory(CompressMemory):
    """Chooses the recall slots and moves the window, in float32.

    No weights but the scorer's and those of a learned feature map.

    The host copies what comes back into the caches (`runtime_py.carried`), once in N tokens.

    Args:
        model: the attached backbone, for its scorers and its RoPE.
        state: the state tensors, as for the other graphs.
        table: rotates keys to new positions, in the back end's operators.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        state: tuple[TensorSpec, ...],
        table: type[RotaryTable] = RotaryTable,
    ) -> None:
        super().__init__(model, state)
        layers = attention_layers(model)
        # A fused rotation takes no more keys than there are angles: a sliding window may be longer.
        tables = rotary_tables(model, max(self.shape.capacities))
        self._tables = [table(*found.parts) for found in tables]
        self._rule = rank_rule_of(model)
        scorers: list[Any] = [layer.retention_scorer for layer in layers]
        self._scorers = nn.ModuleList(s for s in scorers if s is not None)

    def forward(  # type: ignore[override]
        self,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        scores: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """See `models.recall.carry.carry_layer` and `models.state.fold_oldest`.

        Args:
            length: `[L]` int64, slots in use: the residual is W + N.
            k_cache, v_cache: per layer `[1, K, C, D]`.
            scores: `[1, K, G]` of the layers that have them.
            memory, memory_norm: M `[L, K, D, D]` and z `[L, K, D]`, with a gate only.

        Returns:
            M and z (with a gate), the new scores, then per layer with G > 0 recall K and V
            `[1, K, G, D]`, then per layer window K and V `[1, K, W, D]`; of a layer with a
            sliding window that window but for one token.
        """
        geometry = self.shape.geometry
        sums: tuple[torch.Tensor, ...] = ()
        if memory is not None and memory_norm is not None:
            sums = self._folded(k_cache, v_cache, memory, memory_norm, length)
        longest = length[geometry.longest_layer] if geometry.varies else None
        scorers = self._scorer_of_each_layer()
        known = dict(zip(self.shape.scored, scores, strict=True))
        scales = self._scale_of_each_layer()
        keys, values = scaled_caches(k_cache, v_cache, scales)
        layers = range(self.shape.layers)
        carried = carry(
            geometry,
            self._rule,
            length,
            keys,
            values,
            self._tables,
            scorers,
            [known.get(layer) for layer in layers],
            longest,
        )
        new_scores = [c.scores for c in carried if c.scores is not None]
        recall: list[torch.Tensor] = []
        window: list[torch.Tensor] = []
        for layer, (new, scale) in enumerate(zip(carried, scales, strict=True)):
            if geometry.slots_of(layer):
                recall += self._as_cached(new.recall_k, new.recall_v, scale)
            window += self._as_cached(new.window_k, new.window_v, scale)
        return (*sums, *new_scores, *recall, *window)

    def _as_cached(
        self, key: torch.Tensor, value: Cache, scale: CacheScales | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V as the caches hold them: int8 codes where a layer has scales."""
        if scale is None:
            return key, as_numbers(value)
        codes = value.codes if isinstance(value, ScaledCache) else rounded(value, scale.value)
        return rounded(key, scale.key), codes

    def _scorer_of_each_layer(self) -> list[Any]:
        return list(self._scorers) if len(self._scorers) else [None] * self.shape.layers

    def example_inputs(self) -> tuple[Any, ...]:
        """Arguments of `forward` for tracing: every cache full."""
        k_cache, v_cache, *sums = self._example_state()
        full = torch.tensor(self.shape.capacities)
        scores = [
            torch.zeros(1, self.shape.heads_of(layer).kv_heads, slots)
            for layer, slots in self.shape.scored.items()
        ]
        return (full, k_cache, v_cache, scores, *sums)

    def output_names(self) -> list[str]:
        """Names of the outputs of `forward`."""
        return [output.name for output in self._carried_outputs()]

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature for the manifest."""
        return GraphSpec(file, self._inputs(), self._carried_outputs())

    def _inputs(self) -> tuple[TensorSpec, ...]:
        length = next(spec for spec in self._state if spec.role == "length")
        caches = [spec for spec in self._state if spec.is_cache]
        return (length, *caches, *self._scores(), *self._sums())

    def _scores(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for spec in self._state if spec.role == SCORES)

    def _carried_outputs(self) -> tuple[OutputSpec, ...]:
        shape, geometry = self.shape, self.shape.geometry
        layers = range(shape.layers)
        recall = {layer: slots for layer in layers if (slots := geometry.slots_of(layer))}
        window = {
            layer: geometry.kept_of(layer) if geometry.slides(layer) else geometry.window_length
            for layer in layers
        }
        parts: list[OutputSpec] = []
        for roles, letter, sizes in (
            (RECALL_PARTS, "G", recall),
            (WINDOW_PARTS, "W", window),
        ):
            parts += [
                OutputSpec(
                    tensor_name(role, layer),
                    shape.cache_type,
                    (1, shape.heads_of(layer).kv_heads, size, shape.heads_of(layer).head_dim),
                    f"B K {letter} D",
                    role,
                    layer,
                )
                for layer, size in sizes.items()
                for role in roles
            ]
        return (*(updated(spec) for spec in (*self._sums(), *self._scores())), *parts)
