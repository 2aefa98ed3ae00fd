"""Which gate and which retention scorer go into an artifact."""

from __future__ import annotations

import sys
from pathlib import Path

from edgeinfinite import models
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_GATE
from edgeinfinite.models.geometry import Geometry
from edgeinfinite.models.loading import Backbone, parameters_digest
from edgeinfinite.models.shipped import shipped_scorer

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


def choose_scorer(asked: str | None, backbone: Backbone, needed: bool) -> str | None:
    """What `EdgeInfiniteConfig.scorer` shall be; says so on stderr if it is the shipped one.

    Args:
        asked: a file, `untrained`, or None for the shipped scorer.
        backbone: one is shipped for certain weights.
        needed: whether there are recall slots.

    Returns:
        `untrained`, a path, or None: there are no slots, or nothing to fill them with.
    """
    if asked is not None or not needed:
        return asked
    shipped = shipped_scorer(parameters_digest(backbone.model, gates=False))
    if shipped is None:
        return None
    print(f"note: recall slots are filled by the shipped scorer {shipped.name}", file=sys.stderr)
    return str(shipped)
