"""Choosing the geometry by the size of the state: `--state-mb`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import Heads
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture

_BYTES = {"float32": 4, "float16": 2, "int8": 1}
_ROUND = 64
"""Segment lengths are multiples of it, because matrix kernels are faster with these sizes."""


@dataclass(frozen=True)
class StateShape:
    """What decides the bytes of a state, apart from the geometry.

    Args:
        layers, kv_heads, head_dim: L, K, D.
        cache_type: dtype of K and V, one of `CACHE_TYPES`.
        reads_memory: whether M and z (float32) belong to the state.
        positions: the backbone's trained positions, the largest cache.
        recurrent_bytes: of what layers keep beside caches.
        heads: K and D of every layer, where they differ.
    """

    layers: int
    kv_heads: int
    head_dim: int
    cache_type: str
    reads_memory: bool
    positions: int
    recurrent_bytes: int = 0
    heads: tuple[Heads, ...] = ()

    @classmethod
    def of(cls, facts: Architecture, cache_type: str, *, reads_memory: bool) -> StateShape:
        """The shape of the state for this architecture."""
        return cls(
            len(facts.layers),
            facts.kv_heads,
            facts.head_dim,
            cache_type,
            reads_memory,
            facts.positions,
            sum(4 * math.prod(tensor.shape) for tensor in facts.recurrent),
            facts.heads,
        )

    def _heads_of(self, layer: int) -> Heads:
        return self.heads[layer] if self.heads else Heads(self.kv_heads, self.head_dim)

    def slot_bytes(self, layer: int) -> int:
        """Bytes of K and V of one token in a layer."""
        return 2 * math.prod(self._heads_of(layer)) * _BYTES[self.cache_type]

    @property
    def fixed_bytes(self) -> int:
        """Bytes of M, z, what else layers keep and the counters (`tensors.state_specs`)."""
        memory = 4 * self.layers * self.kv_heads * self.head_dim * (self.head_dim + 1)
        counters = 8 * self.layers + 4
        return (memory if self.reads_memory else 0) + self.recurrent_bytes + counters

    def score_bytes(self, layer: int) -> int:
        """Bytes of the float32 scores of one recall slot in a layer, if its heads score."""
        return 4 * self._heads_of(layer).kv_heads

    def bytes_of(self, geometry: Geometry) -> int:
        """Bytes of the whole state, without scores of recall slots."""
        capacities = enumerate(geometry.capacities(self.layers))
        return sum(c * self.slot_bytes(layer) for layer, c in capacities) + self.fixed_bytes


_SHORTER_PAYS = 1.5
"""Shorter segments are chosen if they leave room for this many times the recall slots."""

GROWS = {"reencode": "segment_length", "carry": "recall_slots"}
"""The length that `geometry_within` chooses, by policy. Without a scorer it is the window."""


def geometry_within(
    geometry: Geometry, megabytes: float, shape: StateShape, grows: str | None = None
) -> Geometry:
    """The largest geometry whose state fits into a number of megabytes.

    Layers with sliding windows take what they need. This chooses one length of the other layers,
    equal in all of them. Everything else stays as given.

    Args:
        geometry: its policy and the lengths to keep.
        megabytes: 10⁶ bytes each, for the whole state.
        shape: see there.
        grows: the length to choose: `segment_length`, `recall_slots` or `window_length`; None takes
            the policy's.

    Raises:
        EdgeInfiniteError: too few for the other lengths; says how many are enough.
    """
    grows = grows or GROWS[geometry.policy]
    capacities = geometry.capacities(shape.layers)
    sliding = [layer for layer in range(shape.layers) if geometry.slides(layer)]
    layers = [layer for layer in range(shape.layers) if not geometry.slides(layer)]
    windows = sum(capacities[layer] * shape.slot_bytes(layer) for layer in sliding)
    others = shape.fixed_bytes + windows
    slot_bytes = sum(shape.slot_bytes(layer) for layer in layers)  # of a slot in each of them
    score_bytes = sum(shape.score_bytes(layer) for layer in layers)
    step = geometry.segment_length if grows == "recall_slots" else _ROUND
    least = 0 if grows == "recall_slots" else step
    now = geometry.most_slots if grows == "recall_slots" else getattr(geometry, grows)
    kept = geometry.capacity - now
    bytes_each = slot_bytes + (score_bytes if grows == "recall_slots" else 0)
    more = int((megabytes * 1e6 - others - kept * slot_bytes) // bytes_each)
    more = min(more, shape.positions - kept) // step * step
    if more < least:
        enough = ((kept + least) * slot_bytes + others) / 1e6
        raise EdgeInfiniteError(
            f"a state of {megabytes:g} MB is too small for these lengths; give at least "
            f"{enough + 0.05:.1f} MB, or shorter sinks and window"
        )
    chosen: dict[str, Any] = {grows: more}
    return replace(geometry, **chosen)


def recall_within(geometry: Geometry, megabytes: float, shape: StateShape) -> Geometry:
    """`geometry_within` for recall slots, with segments half as long where that pays.

    Each layer with a sliding window holds a segment beside its window. In a small state of a hybrid
    model these take what recall slots could have: halving Gemma 3 270M's segments doubles its slots
    in 13 MB, and it recalls more and reads 0.93 times as fast (docs/results/gemma.md).

    Args:
        geometry: of policy `carry`; its segments and recall slots may change.
        megabytes, shape: as for `geometry_within`.

    Raises:
        EdgeInfiniteError: as `geometry_within`.
    """
    half = geometry.segment_length // 2
    hybrid = any(geometry.slides(layer) for layer in range(shape.layers))
    if not hybrid or not half or half % _ROUND:
        return geometry_within(geometry, megabytes, shape, "recall_slots")
    shorter = replace(geometry, segment_length=half, recall_slots=0)
    shorter = geometry_within(shorter, megabytes, shape, "recall_slots")
    try:
        longer = geometry_within(geometry, megabytes, shape, "recall_slots")
    except EdgeInfiniteError:  # too small for longer segments alone
        return shorter
    pays = shorter.most_slots >= _SHORTER_PAYS * max(longer.most_slots, 1)
    return shorter if pays else longer
