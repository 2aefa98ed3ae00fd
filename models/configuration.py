"""Configuration of `attach`. No torch here: the command line reads this before loading torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

NO_GATE = "none"
UNTRAINED_GATE = UNTRAINED_SCORER = "untrained"
INT8_CACHE = "int8"
CACHE_TYPES = ("float32", "float16", INT8_CACHE)
FEATURE_MAPS = ("elu", "softmax", "learned")
OPENINGS = ("constant", "query", "place")


@dataclass(frozen=True)
class EdgeInfiniteConfig:
    """Geometry of the cache, the memory's gate, and the recall slots' scorer.

    Args:
        geometry: lengths and policy of the cache.
        gate: `untrained` (initial values, nearly the base model), `none` (the memory is never
            read), or the path of a trained gate (safetensors).
        gate_rank: r of an untrained gate; None takes `gate.default_rank`.
        feature_map: σ of an untrained gate, one of `FEATURE_MAPS` (see `feature_map`); a trained
            gate's file names its own.
        opening: what decides how far an untrained gate opens, one of `OPENINGS`: g alone (the
            paper), g and the query, or g, the query and the place in the cache (see
            `gate.MemoryGate`).
        seed: decides the initial values of an untrained gate or scorer.
        scorer: needed under `carry` with G > 0: the path of a trained scorer (safetensors), or
            `untrained` for random ones, which tests use.
        cache_type: dtype of the KV cache, one of `CACHE_TYPES`; M and z are always float32.
        cache_scales: of an int8 cache, a file (safetensors); None if they are measured later
            (`int8_cache.measure`).

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
    cache_scales: str | None = None

    def __post_init__(self) -> None:
        check_choice("cache type", self.cache_type, CACHE_TYPES)
        check_choice("feature map", self.feature_map, FEATURE_MAPS)
        check_choice("opening", self.opening, OPENINGS)


def check_choice(what: str, name: str, known: Sequence[str]) -> None:
    """Refuses an unknown name.

    Raises:
        EdgeInfiniteError: lists the known names.
    """
    if name not in known:
        raise EdgeInfiniteError(f"unknown {what} {name!r}; choose one of {', '.join(known)}")
