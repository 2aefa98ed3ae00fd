"""Choosing the geometry by the size of the state: `--state-mb`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture

_BYTES = {"float32": 4, "float16": 2}
_ROUND = 64
"""Segment lengths are multiples of it, because matrix kernels are faster with these sizes."""


@dataclass(frozen=True)
class StateShape:
    """What decides the bytes of a state, apart from the geometry.

    Args:
        layers, kv_heads, head_dim: L, K, D.
        cache_type: dtype of K and V, `float32` or `float16`.
        reads_memory: whether M and z (float32) belong to the state.
        positions: the backbone's trained positions, the largest cache.
    """

    layers: int
    kv_heads: int
    head_dim: int
    cache_type: str
    reads_memory: bool
    positions: int

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
        )

    @property
    def slot_bytes(self) -> int:
        """Bytes of K and V of one token in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * _BYTES[self.cache_type]

    @property
    def fixed_bytes(self) -> int:
        """Bytes of M, z and the counters, as in `runtime_py.state.state_specs`."""
        memory = 4 * self.layers * self.kv_heads * self.head_dim * (self.head_dim + 1)
        return (memory if self.reads_memory else 0) + 8 * self.layers + 4

    @property
    def score_bytes(self) -> int:
        """Bytes of the float32 scores of one recall slot, if heads score in all layers."""
        return 4 * self.layers * self.kv_heads


def geometry_within(geometry: Geometry, megabytes: float, shape: StateShape) -> Geometry:
    """The largest geometry whose state fits into a number of megabytes.

    Under `reencode` this chooses the segment length, under `carry` the recall slots, equal in all
    layers. Everything else stays as given.

    Args:
        geometry: its policy and the lengths to keep.
        megabytes: 10⁶ bytes each, for the whole state.
        shape: see there.

    Raises:
        EdgeInfiniteError: too few for the other lengths; says how many are enough.
    """
    room = megabytes * 1e6 - shape.fixed_bytes
    slots = min(int(room // shape.slot_bytes), shape.positions)
    kept = geometry.sink_length + geometry.window_length
    if geometry.policy == "reencode":
        segment = (slots - kept) // _ROUND * _ROUND
        _check_room(segment >= _ROUND, kept + _ROUND, megabytes, shape)
        return replace(geometry, segment_length=segment)
    kept += geometry.segment_length
    _check_room(slots >= kept, kept, megabytes, shape)
    recall = int((room - kept * shape.slot_bytes) // (shape.slot_bytes + shape.score_bytes))
    recall = min(recall, shape.positions - kept)
    recall = recall // geometry.segment_length * geometry.segment_length
    return replace(geometry, recall_slots=recall)


def _check_room(enough: bool, slots: int, megabytes: float, shape: StateShape) -> None:
    if not enough:
        least = (slots * shape.slot_bytes + shape.fixed_bytes) / 1e6
        raise EdgeInfiniteError(
            f"a state of {megabytes:g} MB is too small for these lengths; give at least "
            f"{least + 0.05:.1f} MB, or shorter sinks and window"
        )
