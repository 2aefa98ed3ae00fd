"""Schemas as libraries write them: what is written otherwise means the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgeinfinite.runtime_py.answer.grammars.json_schemas import understood


def test_what_looks_like_a_schema_in_data_is_left_alone() -> None:
    part = {"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", "format": "password"}
    schema: dict[str, Any] = {"enum": [part], "const": part, "default": part, "examples": [part]}
    assert understood(schema) is schema
    changed = understood({"properties": {"pattern": part}, "default": part})
    assert changed["default"] == part
    assert changed["properties"]["pattern"] == {"pattern": r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"}


TEXT = {"type": "string"}
NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"uniqueItems": False}, {}),
        ({"uniqueItems": True, "maxItems": 1}, {"maxItems": 1}),
        ({"minContains": 2, "maxContains": 3}, {}),
        ({"contains": TEXT, "minContains": 0}, {}),
        ({"if": TEXT}, {}),
        ({"then": TEXT, "else": TEXT}, {}),
        ({"dependentRequired": {}, "dependentSchemas": {}, "dependencies": {}}, {}),
        ({"not": False}, {}),
        ({"unevaluatedProperties": True, "unevaluatedItems": {}}, {}),
        ({"unevaluatedProperties": False}, {"additionalProperties": False}),
        ({"unevaluatedProperties": False, "additionalProperties": TEXT}, "additionalProperties"),
        (
            {"prefixItems": [TEXT], "unevaluatedItems": NUMBER},
            {"prefixItems": [TEXT], "items": NUMBER},
        ),
        ({"propertyNames": {"type": "string"}}, {}),
        (
            {"propertyNames": {"enum": ["a", 3]}, "additionalProperties": NUMBER},
            {"properties": {"a": NUMBER}, "additionalProperties": False},
        ),
        (
            {"propertyNames": {"enum": ["a"]}, "unevaluatedProperties": NUMBER},
            {"properties": {"a": NUMBER}, "additionalProperties": False},
        ),
        (
            {"propertyNames": {"const": "a"}},
            {"properties": {"a": True}, "additionalProperties": False},
        ),
        (
            {"propertyNames": {"type": "string", "pattern": "^a"}, "required": ["ab"]},
            {
                "patternProperties": {"^a": True},
                "additionalProperties": False,
                "required": ["ab"],
            },
        ),
        (
            {"propertyNames": {"$ref": "#/$defs/E"}, "$defs": {"E": {"title": "E", "enum": ["a"]}}},
            {
                "$defs": {"E": {"title": "E", "enum": ["a"]}},
                "properties": {"a": True},
                "additionalProperties": False,
            },
        ),
        (TEXT | {"format": "file-path"}, TEXT),
        (TEXT | {"format": "nanoid", "pattern": "^a$"}, TEXT | {"pattern": "^a$"}),
    ],
)
def test_what_changes_nothing_is_left_out(part: dict[str, Any], expected: Any) -> None:
    if isinstance(expected, str):
        expected = {expected: part[expected]}
    assert understood(part) == expected
    inside = {"properties": {"x": {"anyOf": [{"type": "null"}, part]}}}
    if "$defs" not in part:
        assert understood(inside)["properties"]["x"]["anyOf"][1] == expected
    assert understood(json.loads(json.dumps(expected))) == expected


@pytest.mark.parametrize(
    "part",
    [
        {"uniqueItems": True, "maxItems": 2},
        {"contains": TEXT},
        {"contains": TEXT, "minContains": 0, "maxContains": 1},
        {"if": TEXT, "then": NUMBER},
        {"dependentRequired": {"a": ["b"]}},
        {"not": TEXT},
        {"anyOf": [{"properties": {"a": TEXT}}], "unevaluatedProperties": False},
        {"items": [TEXT], "unevaluatedItems": False},
        {"propertyNames": {"enum": ["a"]}, "properties": {"b": TEXT}},
        {"propertyNames": {"minLength": 3}},
        {"propertyNames": False},
        TEXT | {"format": "email", "pattern": "^a@"},
        TEXT | {"format": "jwt"},
        {"title": "T", "description": "D", "examples": [1], "default": 2, "$comment": "c"},
    ],
)
def test_what_changes_something_is_left_alone(part: dict[str, Any]) -> None:
    assert understood(part) is part


def test_patterns_that_replace_one_must_all_hold() -> None:
    given = TEXT | {"pattern": "^(?=.*a)(?=.*b)c", "allOf": [{"minLength": 3}]}
    assert understood(given) == TEXT | {
        "pattern": "^(?:.*a)",
        "allOf": [{"minLength": 3}, {"pattern": "^(?:.*b)"}, {"pattern": "^c"}],
    }
    base64 = understood(TEXT | {"format": "base64"})
    assert set(base64) == {"type", "pattern"}
