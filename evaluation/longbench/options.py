"""Options of `evaluate longbench`. No torch here: the command line reads this first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks

EMPTY = "empty"
"""The method that gets the question without the context."""

MEASURES = ("loss", "score")


@dataclass(frozen=True)
class LongBenchOptions:
    """What to measure.

    Args:
        methods: `empty` and others; see `systems.LONGBENCH_METHODS`.
        tasks: LongBench's tasks, or languages (`en`, `zh`, `code`); empty means all in the folder.
        measures: `score` generates an answer and scores it, `loss` measures the gold answers'.
        rows_per_task: number of first rows to take; None takes all.
        max_tokens: rows with a longer prompt are left out; None takes all.
        cut_length: longest prompt of every method; longer ones are cut in the middle. None cuts
            only for methods that are limited to the backbone's positions.
    """

    methods: Sequence[str] = (EMPTY, "full", "streaming", "edgeinfinite")
    tasks: Sequence[str] = ()
    measures: Sequence[str] = MEASURES
    rows_per_task: int | None = None
    max_tokens: int | None = None
    cut_length: int | None = None

    def __post_init__(self) -> None:
        chosen_tasks(self.tasks)  # refuses unknown names
        for measure in self.measures:
            if measure not in MEASURES:
                raise EdgeInfiniteError(
                    f"unknown measure {measure!r}; choose from {', '.join(MEASURES)}"
                )
        if not self.measures:
            raise EdgeInfiniteError(f"nothing to measure; choose from {', '.join(MEASURES)}")
