"""Defaults: turns a user's options into a complete configuration for `attach`, with notes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.configuration import (
    CACHE_TYPES,
    INT8_CACHE,
    NO_GATE,
    UNTRAINED_GATE,
    EdgeInfiniteConfig,
)
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.recall.layer_slots import most_slots_of_retrieval, slots_by_layer
from edgeinfinite.models.shipped import shipped_gate, shipped_scorer
from edgeinfinite.models.sliding import with_windows
from edgeinfinite.models.state_size import GROWS, StateShape, geometry_within, recall_within
from edgeinfinite.models.trained_file import read_metadata


@dataclass(frozen=True)
class ModelOptions:
    """A user's options for a model; options left out take the model's defaults.

    Args:
        geometry: lengths and policy of the cache, or the size of the state.
        gate: a trained gate's file, `untrained`, `none` (the memory is never read), or None for the
            gate shipped for this model and geometry.
        scorer: a trained retention scorer's file, `untrained`, or None for the shipped one.
        cache_type: dtype of the KV cache; None takes bytes under `carry`, which hold the most of a
            text in a number of MB, and float16 under `reencode`, as far as `cache_types` has them;
            with weights in floats, which are there to be compared with, float32 unless a size is
            given.
        cache_types: what the default is chosen from.
        quantized: whether the weights are; decides the default cache type.
        slots_as: the cache type whose default number of slots is taken; None takes `cache_type`'s.
    """

    geometry: Geometry | GeometryOptions = field(default_factory=GeometryOptions)
    gate: str | None = None
    scorer: str | None = None
    cache_type: str | None = "float32"
    cache_types: tuple[str, ...] = CACHE_TYPES
    quantized: bool = True
    slots_as: str | None = None

    @property
    def asked(self) -> GeometryOptions:
        """The geometry as options, even if a whole `Geometry` was given."""
        if isinstance(self.geometry, Geometry):
            return GeometryOptions.of(self.geometry)
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

    The default policy is `carry`. A model without a known scorer has a longer window instead of
    recall slots: on held-out books SmolLM2-135M lost 0.127 nats a token less under `carry` than
    under `reencode` without a memory, at the same 640 slots. So `reencode` is the default only if
    a gate is asked for and no scorer is known.

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
    if all(architecture_of(backbone.model).sliding_windows):
        scorer = None
    cache_type = cache_type_of(options, scorer)
    geometry = _geometry(scorer, backbone, options, cache_type)
    if asked.policy is None and geometry.policy == "carry":
        notes += _about_policy(geometry, scorer, backbone)
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
    config = EdgeInfiniteConfig(geometry, gate, scorer=scorer, cache_type=cache_type)
    return Resolved(config, tuple(notes))


def cache_type_of(options: ModelOptions, scorer: str | None = None) -> str:
    """The dtype of the KV cache that was asked for, or the policy's best one that there is.

    Args:
        options: see there.
        scorer: the scorer's file, if one is known; with a gate it decides the policy.
    """
    if options.cache_type is not None:
        return options.cache_type
    floats = not options.quantized and options.asked.state_mb is None
    if floats and "float32" in options.cache_types:
        return "float32"
    policy = options.asked.policy_for(scorer=scorer is not None, gate=_asks_for_gate(options))
    return next(name for name in _PREFERRED[policy] if name in options.cache_types)


_PREFERRED = {
    "carry": (INT8_CACHE, "float16", "float32"),
    "reencode": ("float16", "float32", INT8_CACHE),
}
"""Cache types by policy, the best first. Bytes were measured under `carry` alone."""


def _asks_for_gate(options: ModelOptions) -> bool:
    return options.gate not in (None, NO_GATE)


def _geometry(
    scorer: str | None, backbone: Backbone, options: ModelOptions, cache_type: str
) -> Geometry:
    """The geometry, with the recall slots divided among the layers at the end."""
    asked, facts = options.asked, architecture_of(backbone.model)
    geometry = asked.resolve(
        scorer=scorer is not None,
        gate=_asks_for_gate(options),
        cache_type=options.slots_as or cache_type,
        positions=facts.positions,
    )
    geometry = with_windows(geometry, facts)
    if asked.state_mb is not None:
        geometry = _within(geometry, asked.state_mb, scorer, backbone, options, cache_type)
    free = asked.recall_slots is None and geometry.most_slots > 0
    if asked.slots.by_card or (free and _retrieval_layers(scorer)):
        geometry = with_trained_slots(geometry, scorer, backbone)
    return geometry


def _about_policy(geometry: Geometry, scorer: str | None, backbone: Backbone) -> list[str]:
    """What a user should know who left the policy open and got `carry`."""
    paper = "--policy reencode is the paper's Algorithm 1"
    if scorer is not None:
        return [f"policy carry, the default for {backbone.name}; {paper}"]
    windows = architecture_of(backbone.model).sliding_windows
    if all(windows):
        return [
            f"every layer of {backbone.name} sees its newest {max(windows)} tokens only; the cache "
            "holds these, and nothing that left them can be recalled"
        ]
    return [
        f"no scorer is known for {backbone.name}: the cache holds {geometry.sink_length} sinks and "
        f"the newest {geometry.window_length} tokens, and recalls nothing else; train a scorer "
        f"for it with train-scorer. {paper}"
    ]


def _within(
    geometry: Geometry,
    megabytes: float,
    scorer: str | None,
    backbone: Backbone,
    options: ModelOptions,
    cache_type: str,
) -> Geometry:
    chosen = GROWS[geometry.policy]
    if chosen == "recall_slots" and scorer is None:
        chosen = "window_length"
    asked = options.asked
    given = asked.slots.number if chosen == "recall_slots" else getattr(asked, chosen)
    if given is not None:
        name = "--" + chosen.replace("_", "-")
        raise EdgeInfiniteError(f"--state-mb chooses {name}; leave one of them out")
    facts = architecture_of(backbone.model)
    reads_memory = _gate(options.gate, backbone, geometry) != NO_GATE
    shape = StateShape.of(facts, cache_type, reads_memory=reads_memory)
    if all(facts.sliding_windows):  # every layer holds its window, no more and no less
        least = shape.bytes_of(geometry) / 1e6
        if least > megabytes:
            raise EdgeInfiniteError(
                f"every layer of {backbone.name} sees its newest {max(facts.sliding_windows)} "
                f"tokens, which takes a state of {least + 0.05:.1f} MB; give at least that"
            )
        return geometry
    if chosen == "recall_slots" and asked.segment_length is None:
        return recall_within(geometry, megabytes, shape)
    return geometry_within(geometry, megabytes, shape, chosen)


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
    every = range(len(facts.layers))
    looking_back = [layer for layer in every if not geometry.slides(layer)]
    retrieval = [looking_back.index(layer) for layer in layers if layer in looking_back]
    slots = slots_by_layer(retrieval, len(looking_back), average, step, most)
    of_layer = dict(zip(looking_back, slots, strict=True))
    return replace(geometry, recall_slots=tuple(of_layer.get(layer, 0) for layer in every))


def _retrieval_layers(scorer: str | None) -> list[int]:
    """Layers with retrieval heads, the most important first; empty if the card names none."""
    card = read_metadata(Path(scorer)) if scorer and Path(scorer).is_file() else {}
    return [int(layer) for layer in json.loads(card.get("retrieval_layers", "[]"))]
