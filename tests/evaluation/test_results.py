"""Rows of several processes become the file that one process would have written."""

from __future__ import annotations

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.processes import Share
from edgeinfinite.evaluation.results import Results

OPTIONS = {"seed": 0}


def results(path, index: int | None = None) -> Results:
    share = Share() if index is None else Share(index, 2)
    return Results(path, "evaluate x", OPTIONS, share)


def row(number: int) -> dict:
    return {"method": "full", "row": number}


def numbers(found: Results) -> list[int]:
    return [one["row"] for one in found.rows]


def test_shares_hold_everything_once():
    items = list(range(7))
    shares = [Share(index, 3).of(items) for index in range(3)]
    assert sorted(item for own in shares for item in own) == items
    assert max(map(len, shares)) == 3
    assert Share().of(items) == items


def test_parts_are_merged_in_the_order_of_the_plan_and_removed(tmp_path):
    path = tmp_path / "rows.json"
    first, second = results(path, 0), results(path, 1)
    second.add([row(1)])
    first.add([row(0)])
    first.add([row(2)])
    second.add([row(3)])
    assert not path.exists() and numbers(first) == [0, 2]
    first.merge(lambda one: one["row"])
    assert numbers(first) == [0, 1, 2, 3] == numbers(results(path))
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]


def test_what_a_killed_run_left_counts_for_any_number_of_processes(tmp_path):
    path = tmp_path / "rows.json"
    alone = results(path)
    alone.add([row(0)])
    results(path, 1).add([row(3)])
    again = [results(path, 0), results(path, 1)]
    assert [numbers(one) for one in again] == [[0, 3], [0, 3]]
    again[1].add([row(1)])
    alone = results(path)
    assert alone.has(row=1) and alone.has(row=3)
    alone.add([row(2)])
    alone.merge(lambda one: one["row"])
    assert numbers(alone) == [0, 1, 2, 3] == numbers(results(path))
    assert len(list(tmp_path.iterdir())) == 1


def test_without_parts_rows_stay_in_the_order_in_which_they_were_measured(tmp_path):
    found = results(tmp_path / "rows.json")
    found.add([row(1), row(0)])
    found.merge(lambda one: one["row"])
    assert numbers(found) == [1, 0]


def test_parts_of_other_options_and_runs_without_a_file_are_refused(tmp_path):
    path = tmp_path / "rows.json"
    Results(path, "evaluate x", {"seed": 1}, Share(1, 2)).add([row(1)])
    with pytest.raises(EdgeInfiniteError, match=r"rows\.json\.part1 holds rows of another"):
        results(path)
    with pytest.raises(EdgeInfiniteError, match="give --json"):
        results(None, 0)
