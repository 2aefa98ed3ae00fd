"""The trained parts that come with the package, and the recall slots that they were trained for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from edgeinfinite import EdgeInfiniteError, models
from edgeinfinite.models.geometry import Geometry
from edgeinfinite.models.loading import Backbone, parameters_digest
from edgeinfinite.models.trained_file import read_metadata


def shipped_scorer(weights_sha256: str) -> Path | None:
    """The retention scorer that was trained for a backbone.

    Args:
        weights_sha256: the digest of its weights, as `loading.parameters_digest` computes it.

    Returns:
        The file, or None where no scorer is shipped for these weights.
    """
    folder = Path(next(iter(models.__path__))) / "scorers"
    for path in sorted(folder.glob("*.safetensors")):
        if read_metadata(path).get("weights_sha256") == weights_sha256:
            return path
    return None


def choose_scorer(asked: str | None, backbone: Backbone) -> str | None:
    """What fills the recall slots; says so on stderr if it is the shipped scorer.

    Args:
        asked: a file, `untrained`, or None for the shipped one.
        backbone: a scorer is shipped for certain weights.

    Returns:
        `untrained`, a path, or None: nothing is shipped for these weights.
    """
    if asked is not None:
        return asked
    shipped = shipped_scorer(parameters_digest(backbone.model, gates=False))
    if shipped is None:
        return None
    print(f"note: recall slots are filled by the shipped scorer {shipped.name}", file=sys.stderr)
    return str(shipped)


def with_trained_slots(geometry: Geometry, scorer: str | None) -> Geometry:
    """The geometry with the recall slots of each layer that a scorer's card recommends.

    Args:
        geometry: of policy `carry`, with any recall slots.
        scorer: the scorer's file.

    Raises:
        EdgeInfiniteError: there is no scorer, its card recommends nothing, or not for this N.
    """
    card = read_metadata(Path(scorer)) if scorer and Path(scorer).is_file() else {}
    if "recall_slots" not in card:
        where = f"{scorer} says nothing" if scorer else "without a trained scorer nothing is known"
        raise EdgeInfiniteError(
            f"{where} about recall slots by layer; give a number of slots, or a --scorer made with "
            "train-scorer"
        )
    return replace(geometry, recall_slots=tuple(json.loads(card["recall_slots"])))
