"""Cases of neighbouring tools: every test that is said to hold one's right value is there."""

from __future__ import annotations

import ast
import sys

import pytest
from tree import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import results_cases
import results_tables

ROWS = results_tables.rows_of(results_cases.FILE)


def named(language: str) -> list[tuple[str, str]]:
    """File and name of every test that a row names."""
    tests = [test for row in ROWS for test in row[language] or ()]
    pairs = (test.partition("::") for test in dict.fromkeys(tests))
    return [(file, name) for file, _, name in pairs]


def test_every_case_stands_once_and_says_what_it_is() -> None:
    numbers = [row["case"] for row in ROWS]
    assert numbers == sorted(set(numbers))
    assert all(row["kind"] and row["seen"] for row in ROWS)


@pytest.mark.parametrize(("file", "name"), named("python"))
def test_a_python_test_that_holds_a_case_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name.startswith("test_")
    assert name in [part.name for part in tree.body if isinstance(part, ast.FunctionDef)]


@pytest.mark.parametrize(("file", "name"), named("kotlin"))
def test_a_kotlin_test_that_holds_a_case_is_there(file: str, name: str) -> None:
    found = (ROOT / "android_demo").glob(f"*/src/test/kotlin/**/{file}")
    lines = [
        line.strip() for path in found for line in path.read_text(encoding="utf-8").splitlines()
    ]
    (at,) = (
        i for i, line in enumerate(lines) if line.startswith((f"fun `{name}`(", f"fun {name}("))
    )
    assert lines[at - 1] == "@Test"


def test_a_case_counts_as_failing_until_a_test_holds_it() -> None:
    cell = results_cases.fail_now("kotlin")
    without, held, no_part = {"kotlin": []}, {"kotlin": ["A.kt::a"]}, {"kotlin": None}
    assert cell([held, without]) == "1"
    assert cell([held, no_part]) == "0 of 1"
    assert cell([no_part]) == "–"
