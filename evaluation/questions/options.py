"""Options of every benchmark of questions. No torch here: the command line reads this first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgeinfinite.errors import EdgeInfiniteError

EMPTY = "empty"
"""The method that gets the question without the context."""

MEASURES = ("loss", "score")


@dataclass(frozen=True)
class QuestionOptions:
    """How questions are read and answered.

    Args:
        methods: `empty` and others; see `systems.QUESTION_METHODS`.
        measures: `score` generates an answer and scores it, `loss` measures the gold answers.
        cut_length: where every method's prompt is cut in the middle; None cuts only for methods
            that need the backbone's positions for all of it, to what fits them.
        cut_methods: the same for single methods, by name, instead of `cut_length`.
    """

    methods: Sequence[str] = (EMPTY, "full", "streaming", "edgeinfinite")
    measures: Sequence[str] = MEASURES
    cut_length: int | None = None
    cut_methods: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for measure in self.measures:
            if measure not in MEASURES:
                raise EdgeInfiniteError(
                    f"unknown measure {measure!r}; choose of {', '.join(MEASURES)}"
                )
        if not self.measures:
            raise EdgeInfiniteError(f"nothing to measure; choose of {', '.join(MEASURES)}")
