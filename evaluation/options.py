"""Options of `evaluate`. No torch here: the command line reads this before loading torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import KINDS, draw_facts
from edgeinfinite.models.configuration import CACHE_TYPES, NO_GATE, check_choice
from edgeinfinite.models.geometry_options import GeometryOptions

DTYPES = ("float32", "bfloat16")

_ROOM_FOR_A_QUESTION = 64


@dataclass(frozen=True)
class PasskeyOptions:
    """What to measure.

    Args:
        methods: some of `METHODS`.
        lengths: prompt lengths in tokens.
        samples: texts of each length.
        facts: planted in each text.
        kinds: kinds of facts, some of `KINDS`, in alternation.
        seed: the first sample's; the others count up from it.
        questions: a file in SQuAD's format, whose paragraphs are planted instead of invented facts.
        in_turn: asks the questions one after the other, in random order and each followed by its
            right answer, instead of each from the state after the text.
        turns: tells the facts at the start of a chat in the model's template and asks so many turns
            after the last one; 0 plants them in a text.
    """

    methods: Sequence[str] = ("full", "streaming", "edgeinfinite")
    lengths: Sequence[int] = (4000, 7500, 16000)
    samples: int = 6
    facts: int = 8
    kinds: Sequence[str] = KINDS
    seed: int = 0
    questions: str | None = None
    in_turn: bool = False
    turns: int = 0

    def __post_init__(self) -> None:
        if self.questions is None:  # refuses a choice that can't be drawn
            draw_facts(self.facts, np.random.default_rng(0), self.kinds)
        elif self.facts < 1:
            raise EdgeInfiniteError(f"facts is {self.facts}; give at least 1")
        if self.samples < 1:
            raise EdgeInfiniteError(f"samples is {self.samples}; give at least 1")
        if self.turns < 0:
            raise EdgeInfiniteError(f"turns is {self.turns}; give at least 1, or 0 for no chat")
        if self.turns and (self.in_turn or self.questions is not None):
            raise EdgeInfiniteError(
                "a chat tells invented facts and asks each from the same state; leave out --turns, "
                "or --in-turn and --questions"
            )
        for length in self.lengths:
            if length < self.facts * _ROOM_FOR_A_QUESTION:
                raise EdgeInfiniteError(f"{length} tokens are too few for {self.facts} facts")


@dataclass(frozen=True)
class PerplexityOptions:
    """What to measure.

    Args:
        methods: some of `METHODS` and `GATE_CONTROLS`.
        tokens: length of each text.
        documents: how many of the given ones, in order of their names; None takes all.
        bin_length: tokens averaged into one row.
        seed: decides where in a document its text begins.
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
        geometry: for `edgeinfinite` and the controls.
        gate: for `edgeinfinite`, `trained-gate` and `swapped-memory`.
        scorer: for the recall slots.
        zero_gate: for `zero-memory-gate`, a gate trained with a memory that reads zero.
        cache_type: dtype of every method's KV cache, one of `CACHE_TYPES`.
        scale_tokens: of an ordinary text, to measure an int8 cache's scales on.
    """

    geometry: Geometry
    gate: str = NO_GATE
    scorer: str | None = None
    zero_gate: str | None = None
    cache_type: str = "float32"
    scale_tokens: Sequence[int] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_choice("cache type", self.cache_type, CACHE_TYPES)


@dataclass(frozen=True)
class CheckpointOptions:
    """A checkpoint, and the cache that its methods have.

    Args:
        model: what `load_backbone` takes.
        geometry: as for an export; options left out take the defaults of an export's int8 cache.
        gate, scorer: see `ModelOptions`; no gate unless one is given.
        zero_gate: see `Setting`.
        cache_type: dtype of every method's KV cache; None takes float32, and within a `state_mb`
            what an export takes.
        dtype: of the backbone, `float32` or `bfloat16`.
        device: `cpu`, `cuda` or `cuda:N`, see `placement.device_of`.
        pre_tokenizer: see `load_backbone`.
    """

    model: str
    geometry: GeometryOptions = field(default_factory=GeometryOptions)
    gate: str = NO_GATE
    scorer: str | None = None
    zero_gate: str | None = None
    cache_type: str | None = None
    dtype: str = "float32"
    device: str = "cpu"
    pre_tokenizer: str | None = None

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, DTYPES)
        if self.cache_type is not None:
            check_choice("cache type", self.cache_type, CACHE_TYPES)
