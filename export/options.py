"""The options of an export. No torch: the command line imports this before torch is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.geometry_options import GeometryOptions


@dataclass(frozen=True)
class ExportOptions:
    """What to export.

    Args:
        model: what `load_backbone` takes.
        output: the artifact's folder; must not exist, be empty, or be an artifact to replace.
        backend: one of `artifact.backends.BACKENDS`.
        target: `cpu` or an accelerator that the back end knows.
        quantize: a recipe's name.
        geometry, gate, scorer, state_mb: see `ModelOptions`.
        cache_type: dtype of the KV cache. None takes float16 for quantized weights or with
            `state_mb`, if the back end supports it, else float32.

    Raises:
        EdgeInfiniteError: state_mb isn't a size.
    """

    model: str
    output: Path
    backend: str = "onnx"
    target: str = "cpu"
    quantize: str = "none"
    gate: str | None = None
    geometry: Geometry | GeometryOptions = field(default_factory=GeometryOptions)
    scorer: str | None = None
    state_mb: float | None = None
    cache_type: str | None = None

    def __post_init__(self) -> None:
        if self.state_mb is not None and not 0 < self.state_mb < math.inf:
            raise EdgeInfiniteError(f"--state-mb is {self.state_mb}; give megabytes, such as 40")
