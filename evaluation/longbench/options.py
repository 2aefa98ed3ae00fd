"""Options of `evaluate longbench`. No torch here: the command line reads this first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.questions.options import QuestionOptions


@dataclass(frozen=True)
class LongBenchOptions(QuestionOptions):
    """What to measure.

    Args:
        tasks: of LongBench, or languages (`en`, `zh`, `code`); none means all in the folder.
        rows_per_task: the first ones of each that `min_tokens` and `max_tokens` allow; None takes
            all.
        min_tokens: leaves out rows with a shorter prompt.
        max_tokens: leaves out rows with a longer prompt; None takes all.
    """

    tasks: Sequence[str] = ()
    rows_per_task: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen_tasks(self.tasks)  # refuses unknown names

    def takes(self, tokens: int) -> bool:
        """Whether a prompt of this length, before any cut, is to be measured."""
        least, most = self.min_tokens or 0, self.max_tokens
        return least <= tokens and (most is None or tokens <= most)
