"""`ModelShape`: the sizes that the graphs' signatures are made of."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import Heads, RecurrentTensor, TensorSpec, state_specs
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attention_layers, config_of, scored_layers


@dataclass(frozen=True)
class ModelShape:
    """The sizes that the graphs' signatures are made of.

    Args:
        layers, query_heads, kv_heads, head_dim, vocabulary: the backbone's, see `Architecture`.
        geometry: the cache's geometry.
        reads_memory: whether there is a gate.
        cache_type: dtype of the KV cache.
        scored: G by number of each layer whose recall slots have scores.
        recurrent: what layers keep beside caches.
        heads: K and D of every layer where they differ; else empty.
    """

    layers: int
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    geometry: Geometry
    reads_memory: bool
    cache_type: str
    scored: dict[int, int]
    recurrent: tuple[RecurrentTensor, ...] = ()
    heads: tuple[Heads, ...] = ()

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
            recurrent=facts.recurrent,
            heads=facts.heads,
        )

    def heads_of(self, layer: int) -> Heads:
        """K and D of a layer."""
        return self.heads[layer] if self.heads else Heads(self.kv_heads, self.head_dim)

    @property
    def compresses(self) -> bool:
        """Whether there is a graph `compress_memory`: with a gate, or under policy `carry`."""
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
            recurrent=self.recurrent,
            heads=self.heads,
        )
