"""What `attach` adds to a backbone. No torch: the command line reads it before any is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgeinfinite import EdgeInfiniteError
from edgeinfinite.models.geometry import Geometry

NO_GATE = "none"
UNTRAINED_GATE = UNTRAINED_SCORER = "untrained"
CACHE_TYPES = ("float32", "float16")


@dataclass(frozen=True)
class EdgeInfiniteConfig:
    """Geometry of the cache and the gate in front of the memory.

    Args:
        geometry: lengths and policy of the cache.
        gate: `untrained` (initial values, nearly the base model), `none` (the memory is never
            read), or the path of a trained gate (safetensors).
        gate_rank: r of an untrained gate; None takes `gate.default_rank`.
        seed: of an untrained gate's initial values.
        scorer: of the recall slots (`carry` with G > 0): the path of a trained one (safetensors),
            or `untrained`, random, for tests of the mechanism.
        cache_type: of the KV cache's numbers, one of `CACHE_TYPES`; M and z are always float32.

    Raises:
        EdgeInfiniteError: the cache type is unknown.
    """

    geometry: Geometry = field(default_factory=Geometry)
    gate: str = UNTRAINED_GATE
    gate_rank: int | None = None
    seed: int = 0
    scorer: str | None = None
    cache_type: str = "float32"

    def __post_init__(self) -> None:
        if self.cache_type not in CACHE_TYPES:
            raise EdgeInfiniteError(
                f"unknown cache type {self.cache_type!r}; choose one of {', '.join(CACHE_TYPES)}"
            )
