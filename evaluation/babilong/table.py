"""The tables of `evaluate babilong`: one line per task and length, means by length."""

from __future__ import annotations

from collections.abc import Sequence

from edgeinfinite.evaluation.babilong.tasks import TASKS
from edgeinfinite.evaluation.questions.table import question_tables
from edgeinfinite.evaluation.results import Row


def babilong_tables(rows: Sequence[Row]) -> str:
    """All tables of the rows, in Markdown. Every task counts; compare it with `empty`.

    Args:
        rows: from `measure_questions` with BABILong's cases.
    """
    lengths = sorted({row["length"] for row in rows})
    categories = {_line(task, length): f"{length:,} tokens" for length in lengths for task in TASKS}
    shown = [row | {"task": _line(row["task"], row["length"])} for row in rows]
    return question_tables(shown, categories, marks=False)


def _line(task: str, length: int) -> str:
    return f"{task}, {length:,} tokens"
