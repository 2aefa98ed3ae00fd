"""Which gate goes into an artifact."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite import models
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_GATE
from edgeinfinite.models.geometry import Geometry

GATE_FILE = "gate.safetensors"
SCORER_FILE = "scorer.safetensors"
"""Their names inside an artifact."""


def choose_gate(asked: str | None, backbone: str, geometry: Geometry) -> str:
    """What `EdgeInfiniteConfig.gate` shall be.

    Args:
        asked: a file, `none`, `untrained`, or None for the shipped gate.
        backbone: the checkpoint's name.
        geometry: a gate is shipped for one geometry.

    Returns:
        `none`, `untrained`, or a path.
    """
    if asked is not None:
        return asked
    shipped = shipped_gate_path(backbone, geometry)
    if shipped.is_file():
        return str(shipped)
    # Under carry the window and the slots do the remembering; an untrained gate would only make
    # texts that fit the cache differ from the base model's.
    return NO_GATE if geometry.policy == "carry" else UNTRAINED_GATE


def shipped_gate_path(backbone: str, geometry: Geometry) -> Path:
    """Where a trained gate for this model and geometry is, if there is one."""
    lengths = f"s{geometry.sink_length}-n{geometry.segment_length}-w{geometry.window_length}"
    folder = Path(next(iter(models.__path__))) / "gates"
    return folder / f"{Path(backbone).name}-{geometry.policy}-{lengths}.safetensors"
