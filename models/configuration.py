"""What `attach` adds to a backbone. No torch: the command line reads it before any is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

NO_GATE = "none"
UNTRAINED_GATE = UNTRAINED_SCORER = "untrained"
CACHE_TYPES = ("float32", "float16")
MEASURED_CACHE_TYPES = (*CACHE_TYPES, "int8")
"""What `evaluate` can measure: also int8, which no back end has (see `evaluation.int8_cache`)."""
FEATURE_MAPS = ("elu", "softmax", "learned")
OPENINGS = ("constant", "query", "place")


@dataclass(frozen=True)
class EdgeInfiniteConfig:
    """Geometry of the cache and the gate in front of the memory.

    Args:
        geometry: lengths and policy of the cache.
        gate: `untrained` (initial values, nearly the base model), `none` (the memory is never
            read), or the path of a trained gate (safetensors).
        gate_rank: r of an untrained gate; None takes `gate.default_rank`.
        feature_map: σ of an untrained gate, one of `FEATURE_MAPS` (see `feature_map`); a trained
            one's file says which it was trained with.
        opening: what decides how far an untrained gate is open, one of `OPENINGS`: g alone, as in
            the paper, or g and the query, or also the place in the cache (see `gate.MemoryGate`).
        seed: of an untrained gate's initial values.
        scorer: of the recall slots (`carry` with G > 0): the path of a trained one (safetensors),
            or `untrained`, random, for tests of the mechanism.
        cache_type: of the KV cache's numbers, one of `CACHE_TYPES`; M and z are always float32.

    Raises:
        EdgeInfiniteError: the cache type, feature map or opening is unknown.
    """

    geometry: Geometry = field(default_factory=Geometry)
    gate: str = UNTRAINED_GATE
    gate_rank: int | None = None
    feature_map: str = "elu"
    opening: str = "constant"
    seed: int = 0
    scorer: str | None = None
    cache_type: str = "float32"

    def __post_init__(self) -> None:
        check_choice("cache type", self.cache_type, CACHE_TYPES)
        check_choice("feature map", self.feature_map, FEATURE_MAPS)
        check_choice("opening", self.opening, OPENINGS)


def check_choice(what: str, name: str, known: Sequence[str]) -> None:
    """Refuses a name that isn't known.

    Raises:
        EdgeInfiniteError: lists the known ones.
    """
    if name not in known:
        raise EdgeInfiniteError(f"unknown {what} {name!r}; choose one of {', '.join(known)}")
