"""Defaults: turns a user's options into a complete configuration for `attach`, with notes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.configuration import NO_GATE, UNTRAINED_GATE, EdgeInfiniteConfig
from edgeinfinite.models.geometry_options import TRAINED_SLOTS, GeometryOptions
from edgeinfinite.models.loading import Backbone
from edgeinfinite.models.recall.layer_slots import most_slots_of_retrieval, slots_by_layer
from edgeinfinite.models.shipped import shipped_gate, shipped_scorer
from edgeinfinite.models.state_size import StateShape, geometry_within
from edgeinfinite.models.trained_file import read_metadata


@dataclass(frozen=True)
class ModelOptions:
    """A user's options for a model; options left out take the model's defaults.

    Args:
        geometry: lengths and policy of the cache.
        gate: a trained gate's file, `untrained`, `none` (the memory is never read), or None for the
            gate shipped for this model and geometry.
        scorer: a trained retention scorer's file, `untrained`, or None for the shipped one.
        state_mb: largest size of the state in MB, which chooses the segment length (`reencode`) or
            the recall slots (`carry`); None keeps the geometry as given.
        cache_type: dtype of the KV cache.
    """

    geometry: Geometry | GeometryOptions = field(default_factory=GeometryOptions)
    gate: str | None = None
    scorer: str | None = None
    state_mb: float | None = None
    cache_type: str = "float32"

    @property
    def asked(self) -> GeometryOptions:
        """The geometry as options, even if a whole `Geometry` was given."""
        if isinstance(self.geometry, Geometry):
            return GeometryOptions(**asdict(self.geometry))
        return self.geometry


@dataclass(frozen=True)
class Resolved:
    """The resolved options for one model.

    Args:
        config: for `attach`.
        notes: a sentence for the user about each default that was taken.
    """

    config: EdgeInfiniteConfig
    notes: tuple[str, ...] = ()


def resolve(backbone: Backbone, options: ModelOptions) -> Resolved:
    """Decides everything that the options leave out.

    The default policy is `carry` for a model with a known scorer, else the paper's `reencode`.

    Args:
        backbone: its weights decide which shipped trained parts fit.
        options: see there.

    Raises:
        EdgeInfiniteError: the options don't go together, the state is too small for the lengths, or
            recall slots have no scorer.
    """
    notes: list[str] = []
    asked, scorer, shipped = options.asked, options.scorer, None
    if scorer is None and asked.policy != "reencode":
        shipped = shipped_scorer(backbone.weights_sha256)
        scorer = str(shipped) if shipped else None
    geometry = _geometry(asked, scorer, backbone, options)
    if asked.policy is None and scorer is not None:
        notes.append(
            f"policy carry, the default for {backbone.name}; "
            "--policy reencode is the paper's Algorithm 1"
        )
    if not geometry.most_slots:
        scorer = None
    elif scorer is None:
        raise EdgeInfiniteError(
            f"recall slots need a retention scorer, and no scorer is shipped for {backbone.name}; "
            "give --scorer FILE, made with train-scorer"
        )
    elif shipped is not None:
        notes.append(f"recall slots are filled by the shipped scorer {shipped.name}")
    gate = _gate(options.gate, backbone, geometry)
    if options.gate is None and gate != NO_GATE:
        notes.append(_about_gate(gate))
    config = EdgeInfiniteConfig(geometry, gate, scorer=scorer, cache_type=options.cache_type)
    return Resolved(config, tuple(notes))


def _geometry(
    asked: GeometryOptions, scorer: str | None, backbone: Backbone, options: ModelOptions
) -> Geometry:
    """The geometry, with the recall slots divided among the layers at the end."""
    geometry = asked.resolve(scorer=scorer is not None)
    if options.state_mb is not None:
        geometry = _within(geometry, options.state_mb, backbone, options)
    free = asked.recall_slots is None and geometry.most_slots > 0
    if asked.trained_slots or (free and _retrieval_layers(scorer)):
        geometry = with_trained_slots(geometry, scorer, backbone)
    return geometry


def _within(
    geometry: Geometry, megabytes: float, backbone: Backbone, options: ModelOptions
) -> Geometry:
    chosen = "segment_length" if geometry.policy == "reencode" else "recall_slots"
    given = None
    if isinstance(options.geometry, GeometryOptions):
        given = getattr(options.geometry, chosen)
    if given is not None and given != TRAINED_SLOTS:
        name = "--" + chosen.replace("_", "-")
        raise EdgeInfiniteError(f"--state-mb chooses {name}; leave one of them out")
    shape = StateShape.of(
        architecture_of(backbone.model),
        options.cache_type,
        reads_memory=_gate(options.gate, backbone, geometry) != NO_GATE,
    )
    return geometry_within(geometry, megabytes, shape)


def _gate(asked: str | None, backbone: Backbone, geometry: Geometry) -> str:
    """`none`, `untrained`, or a path."""
    if asked is not None:
        return asked
    # Under carry the window and the recall slots remember. An untrained gate would only change the
    # output.
    otherwise = NO_GATE if geometry.policy == "carry" else UNTRAINED_GATE
    shipped = shipped_gate(backbone.weights_sha256, geometry)
    return otherwise if shipped is None else str(shipped)


def _about_gate(gate: str) -> str:
    if gate == UNTRAINED_GATE:
        return (
            "no trained gate is shipped for this model and geometry, the memory is hardly read; "
            "train one with train-gate"
        )
    return f"the memory is read by the shipped gate {Path(gate).name}"


def with_trained_slots(geometry: Geometry, scorer: str | None, backbone: Backbone) -> Geometry:
    """Gives more recall slots to the layers whose retrieval heads a scorer's card names.

    Args:
        geometry: of policy `carry`; its recall slots are the average per layer.
        scorer: the scorer's file.
        backbone: the model.

    Raises:
        EdgeInfiniteError: there is no scorer, or its card doesn't name the retrieval heads.
    """
    layers = _retrieval_layers(scorer)
    if not layers:
        where = f"{scorer} doesn't say" if scorer else "without a trained scorer it is unknown"
        raise EdgeInfiniteError(
            f"{where} which layers recall; give a number of slots, or a --scorer made with "
            "train-scorer"
        )
    facts, step = architecture_of(backbone.model), geometry.segment_length
    average = geometry.most_slots
    fixed = geometry.capacity - average
    most = min(facts.positions - fixed, most_slots_of_retrieval(average))
    most = most // step * step
    if most <= average:
        return geometry  # no positions are left
    slots = slots_by_layer(layers, len(facts.layers), average, step, most)
    return replace(geometry, recall_slots=slots)


def _retrieval_layers(scorer: str | None) -> list[int]:
    """Layers with retrieval heads, the most important first; empty if the card names none."""
    card = read_metadata(Path(scorer)) if scorer and Path(scorer).is_file() else {}
    return [int(layer) for layer in json.loads(card.get("retrieval_layers", "[]"))]
