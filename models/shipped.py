"""The trained parts that come with the package, each made for one checkpoint's weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from msgspec import UNSET

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.trained_file import read_metadata

PACKAGE = Path(__file__).parent
"""The folder of `scorers/` and `gates/`."""


def shipped_scorer(weights_sha256: str) -> Path | None:
    """The shipped retention scorer for a backbone.

    Args:
        weights_sha256: digest of the backbone's weights, `Backbone.weights_sha256`.

    Returns:
        The file, or None if no scorer is shipped for these weights.
    """
    for path in sorted((PACKAGE / "scorers").glob("*.safetensors")):
        if read_metadata(path).get("weights_sha256") == weights_sha256:
            return path
    return None


def shipped_gate(weights_sha256: str, geometry: Geometry) -> Path | None:
    """The shipped gate for a backbone and a geometry.

    Args:
        weights_sha256: the digest of its weights, `Backbone.weights_sha256`.
        geometry: must equal the geometry of the training.

    Returns:
        The file, or None if none is shipped.
    """
    geometry = replace(geometry, sliding_windows=UNSET)
    for path in sorted((PACKAGE / "gates").glob("*.safetensors")):
        card = read_metadata(path)
        made_for = Geometry.from_dict(json.loads(card["geometry"]))
        if card["weights_sha256"] == weights_sha256 and made_for == geometry:
            return path
    return None
