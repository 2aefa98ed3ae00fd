"""Table of cases from bug reports of neighbouring tools: what failed, and what fails now."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row, count, rows_of

FILE = "typed/cases.json"
"""A row's `python` and `kotlin` name the tests that hold its right value; None: no such part."""


def _failed(rows: list[Row]) -> str:
    return f"{sum(bool(row['seen']) for row in rows)}"


def fail_now(language: str) -> Cell:
    """How many cases no test of this language holds; a dash where it has no such part."""

    def cell(rows: list[Row]) -> str:
        tests = [row[language] for row in rows if row[language] is not None]
        failing = sum(not named for named in tests)
        if not tests:
            return "–"
        return f"{failing}" if len(tests) == len(rows) else f"{failing} of {len(tests)}"

    return cell


CASES = Grid(
    ("kind",),
    (
        ("cases", count),
        ("failed at 5df472f", _failed),
        ("fail now, Python", fail_now("python")),
        ("fail now, Kotlin", fail_now("kotlin")),
    ),
    (
        *(
            Line((kind,), FILE, {"kind": kind})
            for kind in dict.fromkeys(row["kind"] for row in rows_of(FILE))
        ),
        Line(("**all**",), FILE, {}),
    ),
)
