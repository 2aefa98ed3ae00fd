"""Schemas as pydantic writes them, and where in a schema a fault is."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from edgeinfinite.runtime_py.answer.grammars.json_schemas import (
    culprit,
    decimal_pattern,
    understood,
)

SIGNS = "+-.01"
BEGUN = r"^(?!^[-+.]*$)[+-]?0*"


@pytest.mark.parametrize(
    "rest",
    [
        r"\d*\.?\d*$",
        r"\d*\.?\d{0,2}0*$",
        r"\d*\.?\d{0,0}0*$",
        r"(?:\d{0,3}|(?=[\d.]{1,4}0*$)\d*\.\d*0*$)",
        r"(?:\d{0,2}|(?=[\d.]{1,5}0*$)\d{0,2}\.\d{0,2}0*$)",
        r"(?:\d{0,0}|(?=[\d.]{1,3}0*$)\d{0,0}\.\d{0,3}0*$)",
        r"(?:\d{0,0}|(?=[\d.]{1,3}0*$)\d{0,0}\.\d{0,2}0*$)",
    ],
)
def test_a_decimals_pattern_means_the_same_without_look_ahead(rest: str) -> None:
    """Over all texts of six signs, against Python's own reading of what pydantic 2.12 writes."""
    ours = decimal_pattern(BEGUN + rest)
    assert ours is not None and "(?" not in ours
    # Two of the patterns don't say where the number ends; a number is meant.
    theirs = re.compile(BEGUN + rest if rest.endswith("$") else f"{BEGUN}{rest}$")
    mine = re.compile(ours)
    for length in range(1, 7):
        for signs in itertools.product(SIGNS, repeat=length):
            text = "".join(signs)
            assert bool(mine.search(text)) == bool(theirs.search(text)), text


@pytest.mark.parametrize("pattern", ["^a$", r"^(?!x)\d+$", r"^(?!^[-+.]*$)[+-]?0*x"])
def test_other_patterns_are_left_alone(pattern: str) -> None:
    assert decimal_pattern(pattern) is None
    schema = {"type": "string", "pattern": pattern}
    assert understood(schema) is schema


def test_what_looks_like_a_schema_in_data_is_left_alone() -> None:
    part = {"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", "format": "password"}
    schema: dict[str, Any] = {"enum": [part], "const": part, "default": part, "examples": [part]}
    assert understood(schema) is schema
    changed = understood({"properties": {"pattern": part}, "default": part})
    assert changed["default"] == part
    assert changed["properties"]["pattern"] == {"pattern": r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"}


SCHEMA = {
    "properties": {
        "price": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "(?=a)b"}]},
        "tags": {"type": "array", "uniqueItems": True},
        "file": {"type": "string", "format": "regex"},
    }
}


@pytest.mark.parametrize(
    ("reason", "where"),
    [
        ("regex parse error", "properties.price.anyOf[1] has the pattern '(?=a)b': "),
        ('Unimplemented keys: ["uniqueItems"]', "properties.tags has uniqueItems: "),
        ("Unknown format: regex", "properties.file: "),
        ("something else", ""),
    ],
)
def test_a_fault_is_found_by_its_place(reason: str, where: str) -> None:
    def refusal(part: dict[str, Any]) -> str | None:
        return reason if "(?" in part["pattern"] else None

    assert culprit(SCHEMA, reason, refusal) == where
