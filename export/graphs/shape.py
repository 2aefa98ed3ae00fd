"""`ModelShape`: the sizes that the graphs' signatures are made of."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import TensorSpec, state_specs
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attention_layers,
    config_of,
    heads_of_caches,
    scored_layers,
)


@dataclass(frozen=True)
class ModelShape:
    """The sizes that the graphs' signatures are made of.

    Args:
        layers, query_heads, kv_heads, head_dim, vocabulary: the backbone's.
        cache_heads: KV heads of each cache; a layer has one with all of its heads, or more.
        geometry: the cache's geometry.
        reads_memory: whether there is a gate.
        cache_type: dtype of the KV cache.
        scored: G by number of each layer whose recall slots have scores.
    """

    layers: int
    query_heads: int
    kv_heads: int
    cache_heads: tuple[int, ...]
    head_dim: int
    vocabulary: int
    geometry: Geometry
    reads_memory: bool
    cache_type: str
    scored: dict[int, int]

    @classmethod
    def of(cls, model: PreTrainedModel) -> ModelShape:
        """The sizes of an attached model."""
        facts, geometry = architecture_of(model), config_of(model).geometry
        return cls(
            layers=len(facts.layers),
            query_heads=facts.query_heads,
            kv_heads=facts.kv_heads,
            cache_heads=tuple(heads_of_caches(model)),
            head_dim=facts.head_dim,
            vocabulary=facts.vocabulary,
            geometry=geometry,
            reads_memory=attention_layers(model)[0].memory_gate is not None,
            cache_type=config_of(model).cache_type,
            scored=scored_layers(model),
        )

    @property
    def compresses(self) -> bool:
        """Whether there is a graph `compress_memory`: with a gate, or under policy `carry`."""
        return self.reads_memory or self.geometry.policy == "carry"

    @property
    def caches(self) -> int:
        """How many caches there are: as many as layers, or more."""
        return len(self.cache_heads)

    @property
    def capacities(self) -> list[int]:
        """C of every cache."""
        return self.geometry.capacities(self.caches)

    def state(self) -> tuple[TensorSpec, ...]:
        """The state in the layout `B K C D`."""
        return state_specs(
            self.layers,
            self.cache_heads,
            self.capacities,
            self.head_dim,
            memory=self.reads_memory,
            cache_type=self.cache_type,
            scored=self.scored,
        )
