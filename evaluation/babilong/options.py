"""Options of `evaluate babilong`. No torch here: the command line reads this first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.tasks import TASKS, chosen_tasks
from edgeinfinite.evaluation.questions.options import QuestionOptions

ANSWER_LENGTH = 15
"""Most tokens of a generated answer; prompts ask for one word."""


@dataclass(frozen=True)
class BabilongOptions(QuestionOptions):
    """What to measure.

    Args:
        tasks: some of `TASKS`.
        lengths: lengths of the whole prompts in tokens.
        samples: questions per task and length; the same at every length if their facts fit.
        seed: decides the questions, the books, and the places of the facts.
    """

    tasks: Sequence[str] = tuple(TASKS)
    lengths: Sequence[int] = (4096, 8192, 16384)
    samples: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen_tasks(self.tasks)  # refuses unknown names
        if self.samples < 1:
            raise EdgeInfiniteError(f"samples is {self.samples}; give at least 1")
