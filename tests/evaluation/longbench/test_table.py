"""The tables agree with the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeinfinite.evaluation.longbench.table import longbench_tables
from edgeinfinite.evaluation.questions.table import bootstrap, counted_tasks


def row(method: str, task: str, name: str, nats: float, score: float | None = None) -> dict:
    fields: dict[str, Any] = {"method": method, "task": task, "row": name, "answer_nats": nats}
    figures = ("state_bytes", "peak_state_bytes", "average_state_bytes")
    fields |= dict.fromkeys(figures, 26_700_000)
    return fields | {"score": score, "prompt_tokens": 1000, "first_token_s": 1.5}


ROWS = [
    row("empty", "qasper", "a", 5.0, 0.0),
    row("empty", "qasper", "b", 3.0, 0.2),
    row("empty", "lcc", "a", 2.0, 0.5),
    row("full", "qasper", "a", 2.0, 0.4),
    row("full", "qasper", "b", 2.0, 0.6),
    row("full", "lcc", "a", 2.5, 0.9),
    row("ours", "qasper", "a", 3.0, 0.4),
    row("ours", "qasper", "b", 2.5, 0.4),
    row("ours", "lcc", "a", 1.0, 0.7),
]


def cells(table: str, start: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def tables() -> tuple[str, str, str]:
    """Bytes, scores and losses."""
    first, score, loss = longbench_tables(ROWS).split("## ")
    return first, score, loss


def test_tasks_are_means_of_rows_and_overall_is_a_mean_of_tasks():
    _, score, loss = tables()
    assert cells(score, "qasper") == ["qasper", "2", "10.0", "50.0", "40.0"]
    assert cells(score, "lcc") == ["lcc", "1", "50.0", "90.0", "70.0"]
    overall = "**overall**, mean of tasks"
    assert cells(score, overall) == [overall, "3", "30.0", "70.0", "55.0"]
    overall = "**overall**, mean of rows"
    assert cells(score, overall) == [overall, "3", "23.3", "63.3", "50.0"]
    assert cells(loss, "qasper") == ["qasper", "2", "4.00", "2.00", "2.75"]


def test_a_task_where_full_attention_does_not_beat_the_empty_context_does_not_count():
    _, score, loss = tables()
    assert "\\*" not in score  # by its score lcc counts
    assert cells(loss, "lcc *") == ["lcc *", "1", "2.00", "2.50", "1.00"]
    overall = "**overall**, mean of rows"
    assert cells(loss, overall) == [overall, "2", "4.00", "2.00", "2.75"]
    assert "**code completion**" not in loss
    everything = "all rows, the marked ones too"
    assert cells(loss, everything) == [everything, "3", "3.33", "2.17", "2.17"]
    values = {"lcc": np.array([[2.0], [2.5]])}
    assert counted_tasks(["empty", "full"], values, -1) == []
    assert counted_tasks(["empty", "ours"], values, -1) == ["lcc"]  # nothing to tell by


def test_differences_are_paired_and_their_intervals_hold_the_mean():
    _, _, loss = tables()
    pairs = loss.split("Line minus column")[1]
    (ours,) = (line for line in pairs.splitlines() if line.startswith("| ours"))
    minus_empty, minus_full = (cell.strip() for cell in ours.strip("|").split("|")[1:])
    assert minus_empty == "-1.25 [-2.00, -0.50]"
    assert minus_full == "+0.75 [+0.50, +1.00]"


def test_the_bootstrap_has_the_spread_of_a_mean_and_keeps_the_tasks_shares():
    random = np.random.default_rng(1)
    values = {"a": random.normal(0, 1, (1, 200)), "b": random.normal(5, 1, (1, 100))}
    draws = bootstrap(values)
    mean = np.concatenate([v[0] for v in values.values()]).mean()
    assert draws.mean() == pytest.approx(mean, abs=0.01)
    assert draws.std() == pytest.approx(1 / np.sqrt(300), rel=0.15)  # not that of both together
    # Of tasks with a row each, as of all rows of one task.
    single = {str(place): values["b"][:, place : place + 1] for place in range(100)}
    np.testing.assert_allclose(bootstrap(single), bootstrap({"b": values["b"]}))
    # Both methods get the same rows: what they share cancels out.
    paired = bootstrap({"a": np.stack([values["a"][0], values["a"][0] + 1])})
    np.testing.assert_allclose(paired[:, 1] - paired[:, 0], 1)


def test_rows_that_some_method_lacks_are_left_out():
    assert "| qasper | 1 |" in longbench_tables(ROWS[:-2])
    assert "lcc" not in longbench_tables(ROWS[:-1])


def test_a_missing_measure_has_no_table():
    rows = [one | {"score": None} for one in ROWS]
    assert "score" not in longbench_tables(rows) and "## nats" in longbench_tables(rows)


def test_bytes_are_shown_as_held_average_and_peak():
    rows = [one | {"peak_state_bytes": 90_000_000, "average_state_bytes": 4e7} for one in ROWS]
    shown = cells(longbench_tables(rows).split("## ")[0], "ours")
    assert shown == ["ours", "3", "1,000", "26.7", "40.0", "90.0", "1.5 s"]
