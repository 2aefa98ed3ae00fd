"""Tables of answered questions: tasks, categories and overall, with bootstrap intervals.

Every method has answered the same rows, so differences are paired: each bootstrap draws the same
rows for both methods, within each task, and the interval holds 95 % of the means. Tasks with few
rows are drawn together, because draws from a single row have no spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.evaluation.questions.options import EMPTY
from edgeinfinite.evaluation.report import markdown
from edgeinfinite.evaluation.results import Row

FULL = "full"
"""The method that must beat `empty`; else the model doesn't need the context for this task."""

_DRAWS = 10_000
_FEW_ROWS = 5
"""Tasks with fewer are drawn together."""
_MARK = " *"


@dataclass(frozen=True)
class Measure:
    """A column of the rows.

    Args:
        field: of a row.
        title: of the table.
        factor: from the field to what is shown.
        sign: 1 where more is better, -1 where less is.
        digits: behind the point.
    """

    field: str
    title: str
    factor: float
    sign: int
    digits: int


MEASURES = (
    Measure("score", "score, of 100 (more is better)", 100.0, 1, 1),
    Measure("answer_nats", "nats per token of the gold answer (less is better)", 1.0, -1, 2),
)

Values = Mapping[str, np.ndarray]
"""By task: `[methods, rows]`, the rows that all methods have."""


def question_tables(
    rows: Sequence[Row], categories: Mapping[str, str], *, marks: bool = True
) -> str:
    """All tables of the rows, in Markdown. Means of categories and overall are means of tasks.

    Args:
        rows: from `measure_questions`; rows that some method lacks are left out.
        categories: the tasks' categories, in the order of the table.
        marks: whether a task in which `full` isn't better than `empty` is marked and counts only
            in the last line's mean.
    """
    methods = list(dict.fromkeys(row["method"] for row in rows))
    parts = [_bytes(rows, methods)]
    for measure in MEASURES:
        values = _values(rows, methods, measure, categories)
        if values:
            counted = counted_tasks(methods, values, measure.sign) if marks else list(values)
            parts += _of_measure(measure, methods, values, counted, categories)
    return "\n\n".join(parts)


def counted_tasks(methods: Sequence[str], values: Values, sign: int) -> list[str]:
    """The tasks in which `full` beats `empty` in the mean; all tasks if either is missing.

    Args:
        methods: in the order of the values.
        values: see there.
        sign: 1 where more is better, -1 where less is.
    """
    if EMPTY not in methods or FULL not in methods:
        return list(values)
    full, empty = methods.index(FULL), methods.index(EMPTY)
    return [t for t, v in values.items() if sign * (v[full].mean() - v[empty].mean()) > 0]


def bootstrap(values: Values, seed: int = 0) -> np.ndarray:
    """Means over all rows `[draws, methods]`, rows drawn with replacement.

    Args:
        values: at least one task.
        seed: decides the draws.
    """
    random = np.random.default_rng(seed)
    groups = [of_task for of_task in values.values() if of_task.shape[1] >= _FEW_ROWS]
    if few := [of_task for of_task in values.values() if of_task.shape[1] < _FEW_ROWS]:
        groups.append(np.concatenate(few, axis=1))
    sums = []
    for group in groups:
        count = group.shape[1]
        drawn = random.integers(count, size=(_DRAWS, count))
        sums.append(np.stack([method[drawn].sum(1) for method in group], axis=-1))
    return np.sum(sums, axis=0) / sum(v.shape[1] for v in values.values())


def _values(
    rows: Sequence[Row], methods: Sequence[str], measure: Measure, tasks: Iterable[str]
) -> Values:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row[measure.field] is not None:
            of_row = found.setdefault(row["task"], {}).setdefault(row["row"], {})
            of_row[row["method"]] = row[measure.field] * measure.factor
    values = {}
    for task in (name for name in tasks if name in found):
        whole = [of_row for of_row in found[task].values() if len(of_row) == len(methods)]
        if whole:
            values[task] = np.array([[of_row[m] for of_row in whole] for m in methods])
    return values


def _of_measure(
    measure: Measure,
    methods: Sequence[str],
    values: Values,
    counted: Sequence[str],
    categories: Mapping[str, str],
) -> list[str]:
    cell = f"{{:.{measure.digits}f}}".format

    def line(title: str, tasks: Sequence[str], means: np.ndarray) -> list[str]:
        count = sum(values[task].shape[1] for task in tasks)
        return [title, str(count), *map(cell, means)]

    lines = []
    for task, of_task in values.items():
        mark = "" if task in counted else _MARK
        lines.append(line(task + mark, [task], of_task.mean(1)))
    shown = dict.fromkeys(categories[task] for task in counted)
    for category in shown if len(counted) > 1 else ():
        own = [task for task in counted if categories[task] == category]
        means = np.mean([values[task].mean(1) for task in own], axis=0)
        lines.append(line(f"**{category}**", own, means))
    if counted:
        means = np.mean([values[task].mean(1) for task in counted], axis=0)
        lines.append(line("**overall**, mean of tasks", counted, means))
        means = np.concatenate([values[task] for task in counted], axis=1).mean(1)
        lines.append(line("**overall**, mean of rows", counted, means))
    if len(counted) < len(values):
        means = np.concatenate(list(values.values()), axis=1).mean(1)
        lines.append(line("all rows, the marked ones too", list(values), means))
    parts = [f"## {measure.title}", markdown(["task", "rows", *methods], lines)]
    if len(counted) < len(values):
        parts.append(f"\\* {FULL} isn't better than {EMPTY} here: the task doesn't count.")
    if counted and len(methods) > 1:
        parts += _differences(measure, methods, {task: values[task] for task in counted})
    return parts


def _differences(measure: Measure, methods: Sequence[str], values: Values) -> list[str]:
    """Each method minus the methods before it, over the rows that count."""
    means = np.concatenate(list(values.values()), axis=1).mean(1)
    draws = bootstrap(values)

    def shown(number: float) -> str:
        return f"{round(number, measure.digits) + 0.0:+.{measure.digits}f}"  # no -0.00

    lines = []
    for a, method in enumerate(methods[1:], start=1):
        cells = [""] * (len(methods) - 1)
        for b in range(a):
            low, high = np.quantile(draws[:, a] - draws[:, b], (0.025, 0.975))
            cells[b] = f"{shown(means[a] - means[b])} [{shown(low)}, {shown(high)}]"
        lines.append([method, *cells])
    note = "Line minus column, mean of the rows that count; in brackets 95 % of paired bootstraps."
    return [note, markdown(["", *methods[:-1]], lines)]


def _bytes(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Bytes of every method's state: when the answer begins, at most, and on average."""
    lines = []
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        held, average = (
            np.mean([row[name] for row in own]) / 1e6
            for name in ("state_bytes", "average_state_bytes")
        )
        peak = max(row["peak_state_bytes"] for row in own) / 1e6
        tokens = np.mean([row["prompt_tokens"] for row in own])
        seconds = np.mean([row["first_token_s"] for row in own])
        figures = f"{held:.1f}", f"{average:.1f}", f"{peak:.1f}", f"{seconds:.1f} s"
        lines.append([method, str(len(own)), f"{tokens:,.0f}", *figures])
    header = ["method", "rows", "prompt tokens", "state MB", "average", "peak", "first token"]
    return markdown(header, lines)
