"""The tables of `evaluate longbench`, with LongBench's tasks and categories."""

from __future__ import annotations

from collections.abc import Sequence

from edgeinfinite.evaluation.longbench.tasks import TASKS
from edgeinfinite.evaluation.questions.table import question_tables
from edgeinfinite.evaluation.results import Row


def longbench_tables(rows: Sequence[Row]) -> str:
    """All tables of the rows, in Markdown; tasks that don't need their context are marked.

    Args:
        rows: from `measure_questions` with LongBench's cases.
    """
    return question_tables(rows, {name: task.category for name, task in TASKS.items()})
