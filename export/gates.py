"""Which gate goes into an artifact."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from edgeinfinite import models
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_GATE
from edgeinfinite.models.loading import Backbone
from edgeinfinite.models.trained_file import read_metadata

GATE_FILE = "gate.safetensors"
SCORER_FILE = "scorer.safetensors"
"""Their names inside an artifact."""


def choose_gate(asked: str | None, backbone: Backbone, geometry: Geometry) -> str:
    """What `EdgeInfiniteConfig.gate` shall be.

    Args:
        asked: a file, `none`, `untrained`, or None for the shipped gate.
        backbone: a gate is shipped for certain weights.
        geometry: and for one geometry.

    Returns:
        `none`, `untrained`, or a path.
    """
    if asked is not None:
        return asked
    # Under carry the window and the slots do the remembering; a gate that isn't trained would only
    # make texts that fit the cache differ from the base model's.
    otherwise = NO_GATE if geometry.policy == "carry" else UNTRAINED_GATE
    shipped = shipped_gate(backbone.weights_sha256, geometry)
    return otherwise if shipped is None else str(shipped)


def tell_gate(gate: str, asked: str | None) -> None:
    """Says on stderr which gate an export takes where nobody named one."""
    if asked is not None or gate == NO_GATE:
        return
    if gate == UNTRAINED_GATE:
        print(
            "note: no trained gate is shipped for this model and geometry, the memory is hardly "
            "read; train one with train-gate",
            file=sys.stderr,
        )
    else:
        print(f"note: the memory is read by the shipped gate {Path(gate).name}", file=sys.stderr)


def shipped_gate(weights_sha256: str, geometry: Geometry) -> Path | None:
    """The gate that was trained for a backbone and a geometry.

    Args:
        weights_sha256: the digest of its weights, `Backbone.weights_sha256`.
        geometry: S, N, W and the policy must be those of the training.

    Returns:
        The file, or None where none is shipped.
    """
    folder = Path(next(iter(models.__path__))) / "gates"
    for path in sorted(folder.glob("*.safetensors")):
        card = read_metadata(path)
        made_for = Geometry.from_dict(json.loads(card["geometry"]))
        if card["weights_sha256"] == weights_sha256 and made_for == geometry:
            return path
    return None
