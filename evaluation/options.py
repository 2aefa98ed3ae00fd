"""What can be asked of `evaluate`. No torch: the command line reads it before any is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import KINDS, draw_facts
from edgeinfinite.models.configuration import MEASURED_CACHE_TYPES, NO_GATE, check_choice

_ROOM_FOR_A_QUESTION = 64


@dataclass(frozen=True)
class PasskeyOptions:
    """What to measure.

    Args:
        methods: of `METHODS`.
        lengths: of the prompts in tokens.
        samples: texts of each length.
        facts: planted in each text.
        kinds: of facts, of `KINDS`; they take turns.
        seed: of the first sample, the others count on from it.
        questions: a file in SQuAD's format, whose paragraphs are planted instead of made-up facts.
        in_turn: asks one question after the other, in a random order, with the right answers
            between them, instead of each from the state after the text.
    """

    methods: Sequence[str] = ("full", "streaming", "edgeinfinite")
    lengths: Sequence[int] = (4000, 7500, 16000)
    samples: int = 6
    facts: int = 8
    kinds: Sequence[str] = KINDS
    seed: int = 0
    questions: str | None = None
    in_turn: bool = False

    def __post_init__(self) -> None:
        if self.questions is None:  # refuses what can't be drawn
            draw_facts(self.facts, np.random.default_rng(0), self.kinds)
        elif self.facts < 1:
            raise EdgeInfiniteError(f"facts is {self.facts}; give at least 1")
        if self.samples < 1:
            raise EdgeInfiniteError(f"samples is {self.samples}; give at least 1")
        for length in self.lengths:
            if length < self.facts * _ROOM_FOR_A_QUESTION:
                raise EdgeInfiniteError(f"{length} tokens are too few for {self.facts} facts")


@dataclass(frozen=True)
class PerplexityOptions:
    """What to measure.

    Args:
        methods: of `METHODS` and `GATE_CONTROLS`.
        tokens: of each text.
        documents: how many, of those given, by name; None takes all.
        bin_length: tokens that are averaged into one row.
        seed: of where in a document its text begins.
    """

    methods: Sequence[str] = ("full", "streaming", "edgeinfinite")
    tokens: int = 8192
    documents: int | None = None
    bin_length: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("tokens", "bin_length"):
            if getattr(self, name) < 2:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be at least 2")


@dataclass(frozen=True)
class Setting:
    """What the methods are built from.

    Args:
        geometry: of `edgeinfinite` and the controls.
        gate: of `edgeinfinite`, `trained-gate` and `swapped-memory`.
        scorer: of the recall slots.
        zero_gate: for `zero-memory-gate`, one that was trained while the memory reads zero.
        cache_type: of every method's KV cache, one of `MEASURED_CACHE_TYPES`.
    """

    geometry: Geometry
    gate: str = NO_GATE
    scorer: str | None = None
    zero_gate: str | None = None
    cache_type: str = "float32"

    def __post_init__(self) -> None:
        check_choice("cache type", self.cache_type, MEASURED_CACHE_TYPES)

    @property
    def tensor_type(self) -> str:
        """What the reference's caches are made of: int8's numbers stand in float32."""
        return "float32" if self.cache_type == "int8" else self.cache_type
