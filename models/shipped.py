"""The trained parts that come with the package, and the recall slots that they were trained for."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from edgeinfinite import EdgeInfiniteError, models
from edgeinfinite.models.geometry import Geometry, GeometryOptions
from edgeinfinite.models.loading import Backbone
from edgeinfinite.models.trained_file import read_metadata


def shipped_scorer(weights_sha256: str) -> Path | None:
    """The retention scorer that was trained for a backbone.

    Args:
        weights_sha256: the digest of its weights, `Backbone.weights_sha256`.

    Returns:
        The file, or None where no scorer is shipped for these weights.
    """
    folder = Path(next(iter(models.__path__))) / "scorers"
    for path in sorted(folder.glob("*.safetensors")):
        if read_metadata(path).get("weights_sha256") == weights_sha256:
            return path
    return None


def choose_geometry(
    asked: Geometry | GeometryOptions, scorer: str | None, backbone: Backbone
) -> tuple[Geometry, str | None]:
    """The geometry for a model, and what fills its recall slots; says so if it is the default.

    Without options a model whose scorer is known gets policy `carry`, any other one the paper's.

    Args:
        asked: what is given is used as it is, the rest is the model's default.
        scorer: a file, `untrained`, or None for the shipped one.
        backbone: a scorer is shipped for certain weights.

    Returns:
        The geometry, and `untrained`, a path, or None where there are no recall slots.

    Raises:
        EdgeInfiniteError: the options don't go together, or recall slots have no scorer.
    """
    if isinstance(asked, Geometry):
        asked = GeometryOptions(**asdict(asked))
    shipped = None
    if scorer is None and asked.policy != "reencode":
        shipped = shipped_scorer(backbone.weights_sha256)
        scorer = str(shipped) if shipped else None
    geometry = asked.resolve(scorer=scorer is not None)
    if asked.trained_slots:
        geometry = with_trained_slots(geometry, scorer)
    if asked.policy is None and scorer is not None:
        print(
            f"note: policy carry, the default for {backbone.name}; "
            "--policy reencode is the paper's Algorithm 1",
            file=sys.stderr,
        )
    if not geometry.most_slots:
        return geometry, None
    if scorer is None:
        raise EdgeInfiniteError(
            f"recall slots need a retention scorer, and no scorer is shipped for {backbone.name}; "
            "give --scorer FILE, made with train-scorer"
        )
    if shipped is not None:
        note = f"recall slots are filled by the shipped scorer {shipped.name}"
        print(f"note: {note}", file=sys.stderr)
    return geometry, scorer


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
