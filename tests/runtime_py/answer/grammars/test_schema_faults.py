"""What a grammar can't hold to is named by its place in the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.grammars.schema_faults import fault_of
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

pytest.importorskip("llguidance")

TEXT = {"type": "string"}
ONE = {"type": "object", "properties": {"a": TEXT}}
TWO = {"type": "object", "properties": {"b": TEXT}}


@pytest.fixture(scope="module")
def guidance(tmp_path_factory: pytest.TempPathFactory) -> Guidance:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("faults") / "checkpoint")
    return Guidance(load_tokenizer(folder, vocabulary=VOCABULARY), VOCABULARY)


REFUSED = [
    ({"type": "array", "uniqueItems": True}, "uniqueItems is not supported"),
    ({"type": "array", "contains": TEXT}, "contains is not supported"),
    ({"not": TEXT}, "not is not supported"),
    ({"if": ONE, "then": TWO}, "if is not supported"),
    (ONE | {"dependentRequired": {"a": ["b"]}}, "dependentRequired is not supported"),
    (ONE | {"propertyNames": {"minLength": 2}}, "propertyNames is not supported"),
    (ONE | {"minProperties": 1}, 'minProperties is supported where all of "properties"'),
    ({"oneOf": [ONE, TWO]}, "oneOf is supported where its choices exclude each other"),
    (TEXT | {"format": "idn-email"}, "format 'idn-email' is not supported"),
    (TEXT | {"pattern": "^(?!b)a$"}, "pattern '^(?!b)a$' can't be used: look-around"),
    (TEXT | {"pattern": r"\bfoo"}, "can't be used: lookarounds not supported"),
    (TEXT | {"pattern": "("}, "pattern '(' can't be used: unclosed group"),
    ({"type": "any"}, "type 'any' is no type of JSON Schema"),
]


@pytest.mark.parametrize(("part", "says"), REFUSED)
def test_a_keyword_is_named_with_its_path(guidance: Guidance, part: dict[str, Any], says: str):
    places = {
        "properties.answer.items": {"properties": {"answer": {"type": "array", "items": part}}},
        "$defs.A.anyOf[1]": {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [TEXT, part]}}},
        "": part,
    }
    for place, schema in places.items():
        with pytest.raises(EdgeInfiniteError) as raised:
            guidance.json_schema(schema)
        said = str(raised.value)
        where = f"{place}." if place else ""
        assert f"the JSON schema can't be used: {where}" in said and says in said, said
        assert "\n" not in said and len(said) < 400


def test_where_no_keyword_is_at_fault_the_innermost_part_is_named(guidance: Guidance) -> None:
    wrong = TEXT | {"minLength": 5, "maxLength": 2}
    schema = {"type": "object", "properties": {"a": TEXT, "b": wrong}, "required": ["b"]}
    with pytest.raises(EdgeInfiniteError, match=r"used: properties\.b: Unsatisfiable schema"):
        guidance.json_schema(schema)
    assert guidance.nearest(schema) is None


def test_the_nearest_schema_lacks_only_what_is_at_fault(guidance: Guidance) -> None:
    """Of a tool that isn't strict, everything else still holds."""
    parts = {f"p{i}": part for i, (part, _) in enumerate(REFUSED)}
    schema = {"type": "object", "properties": parts | {"n": {"type": "integer", "minimum": 3}}}
    nearest = guidance.nearest(schema)
    assert nearest is not None
    guidance.json_schema(nearest)
    assert nearest["properties"]["n"] == {"type": "integer", "minimum": 3}
    assert nearest["properties"]["p9"] == TEXT
    assert json.dumps(schema) == json.dumps({"type": "object", "properties": schema["properties"]})


def test_a_schema_that_takes_too_much_isnt_taken_apart() -> None:
    def never(part: dict[str, Any]) -> str | None:
        raise AssertionError(part)

    found = fault_of({"properties": {"a": TEXT}}, "it takes too much time or memory", never)
    assert found.said == "it takes too much time or memory" and found.keyword is None
