"""The trained parts that come with the package, and the recall slots that they were trained for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from edgeinfinite import models
from edgeinfinite.artifact.geometry import Geometry, GeometryOptions
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.loading import Backbone
from edgeinfinite.models.recall.layer_slots import most_recalling, slots_by_layer
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
    asked: Geometry | GeometryOptions,
    scorer: str | None,
    backbone: Backbone,
    *,
    fit: Callable[[Geometry], Geometry] | None = None,
) -> tuple[Geometry, str | None]:
    """The geometry for a model, and what fills its recall slots; says so if it is the default.

    Without options a model whose scorer is known gets policy `carry`, any other one the paper's.

    Args:
        asked: what is given is used as it is, the rest is the model's default.
        scorer: a file, `untrained`, or None for the shipped one.
        backbone: a scorer is shipped for certain weights.
        fit: chooses the lengths that the bytes of the state decide, before layers get their share.

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
    if fit is not None:
        geometry = fit(geometry)
    free = asked.recall_slots is None and geometry.most_slots > 0
    if asked.trained_slots or (free and _recalling_layers(scorer)):
        geometry = with_trained_slots(geometry, scorer, backbone)
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


def with_trained_slots(geometry: Geometry, scorer: str | None, backbone: Backbone) -> Geometry:
    """The geometry with more recall slots in the layers that recall, by a scorer's card.

    Args:
        geometry: of policy `carry`; its recall slots are those of an average layer.
        scorer: the scorer's file.
        backbone: the model.

    Raises:
        EdgeInfiniteError: there is no scorer, or its card doesn't say which heads recall.
    """
    layers = _recalling_layers(scorer)
    if not layers:
        where = f"{scorer} doesn't say" if scorer else "without a trained scorer nobody knows"
        raise EdgeInfiniteError(
            f"{where} which layers recall; give a number of slots, or a --scorer made with "
            "train-scorer"
        )
    config, step = backbone.model.config.get_text_config(), geometry.segment_length
    average = geometry.most_slots
    fixed = geometry.capacity - average
    most = min(config.max_position_embeddings - fixed, most_recalling(average)) // step * step
    if most <= average:
        return geometry  # there are no more positions
    slots = slots_by_layer(layers, config.num_hidden_layers, average, step, most)
    return replace(geometry, recall_slots=slots)


def _recalling_layers(scorer: str | None) -> list[int]:
    """Layers whose heads recall, the most important first; none if the card doesn't say."""
    card = read_metadata(Path(scorer)) if scorer and Path(scorer).is_file() else {}
    return [int(layer) for layer in json.loads(card.get("recalling_layers", "[]"))]
