"""Calls in Gemma's notation: JSON but for names and texts, which stand without its quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeinfinite.runtime_py.tools.arguments import (
    complete,
    followed,
    kinds_of,
    parts_of,
    properties_of,
    required_of,
)
from edgeinfinite.runtime_py.tools.rules import Quote, any_of, in_order, json_rule, until
from edgeinfinite.runtime_py.tools.tool import Call, Tool
from edgeinfinite.runtime_py.tools.written_texts import refuse_others, text_rule

_ESCAPE = "<escape>"
_OBJECT = ("type", "properties", "required", "additionalProperties", "allOf", "$ref")
_LIST = ("type", "items", "minItems", "maxItems")
_CHOICES = ("anyOf", "oneOf")
_DEEPEST = 100
"""Names of a place in a schema: what is deeper may be anything, and a strict tool is refused."""


class GemmaCall:
    """`call:name{key:<escape>text<escape>,other:1}`."""

    marks: tuple[str, ...] = (_ESCAPE,)
    lists = False
    streams: re.Pattern[str] | None = None

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        yield f"body: {any_of(tools)}"
        yield until("text_end", _ESCAPE, quoted)
        yield r"NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/"
        yield f"text: {quoted(_ESCAPE)} text_end"
        yield 'any: text | NUMBER | "true" | "false" | "null" | list | object'
        yield 'list: "[" (any ("," any)*)? "]"'
        yield 'object: "{" (pair ("," pair)*)? "}"'
        yield r'pair: /[^{}\[\],:<]+/ ":" any'
        for i, tool in enumerate(tools):
            yield f"tool_{i}: {quoted(f'call:{tool.name}')} value_{i}_0"
            yield from _Values(f"value_{i}", tool, quoted).rules()

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        found = re.match(r"\s*call:([\w.-]+)\s*", body)
        if found is None:
            raise ValueError("no call")
        value, end = _read(body, found.end())
        if body[end:].strip() or not isinstance(value, dict):
            raise ValueError("more than a call")
        return [(found[1], value)]


class _Values:
    """Rules for the values of a tool's arguments; the first is of all arguments.

    A schema has one rule, so one that holds itself is held to at any depth.

    Args:
        prefix: begins the rules' names.
        tool: whose arguments they are.
        quoted: writes a text in a grammar.
    """

    def __init__(self, prefix: str, tool: Tool, quoted: Quote) -> None:
        self._prefix = prefix
        self._tool = tool
        self._root = tool.parameters
        self._quoted = quoted
        self._named: dict[int, tuple[str, Mapping[str, Any]]] = {}  # held, so that ids stay theirs
        self._rules: list[str] = []

    def rules(self) -> list[str]:
        """See there."""
        self._object(self._new_name(self._root), self._root, ())
        return self._rules

    def _new_name(self, schema: Mapping[str, Any]) -> str:
        name = f"{self._prefix}_{len(self._named)}"
        self._named[id(schema)] = name, schema
        return name

    def _value(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        """The name of the rule for a schema's values."""
        schema = followed(schema, self._root)
        if id(schema) in self._named:
            return self._named[id(schema)][0]
        name = self._new_name(schema)
        self._write(name, schema, path)
        return name

    def _write(self, name: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> None:
        if len(path) > _DEEPEST:
            refuse_others(self._tool, {"properties": schema}, (), (*path[:4], "…"))
            self._rules.append(f"{name}: any")
            return
        listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(listed, list):
            refuse_others(self._tool, schema, ("type", "enum", "const"), path)
            self._rules.append(f"{name}: {' | '.join(map(self._constant, listed))}")
            return
        for keyword in _CHOICES:
            choices = schema.get(keyword)
            if isinstance(choices, list) and choices:
                refuse_others(self._tool, schema, ("type", keyword), path)
                places = ((*path, keyword, str(i)) for i in range(len(choices)))
                found = map(self._value, map(_schema, choices), places)
                self._rules.append(f"{name}: {' | '.join(found)}")
                return
        kinds = sorted(kinds_of(schema, self._root))
        if not kinds:
            refuse_others(self._tool, schema, (), path)
            self._rules.append(f"{name}: any")
        elif len(kinds) == 1:
            self._of_kind(name, kinds[0], schema, path)
        else:
            names = [f"{name}_{kind}" for kind in kinds]
            self._rules.append(f"{name}: {' | '.join(names)}")
            for one, kind in zip(names, kinds, strict=True):
                self._of_kind(one, kind, _of_one_kind(schema, kind), path)

    def _of_kind(
        self, name: str, kind: str, schema: Mapping[str, Any], path: tuple[str, ...]
    ) -> None:
        if kind == "string":
            ends = text_rule(f"{name}_end", self._tool, schema, _ESCAPE, self._quoted, path)
            self._rules += [f"{name}: {self._quoted(_ESCAPE)} {name}_end", *ends]
        elif kind == "array":
            self._list(name, schema, path)
        elif kind == "object":
            self._object(name, schema, path)
        else:
            whole = complete({**schema, "type": kind}, self._root)
            self._rules.append(f"{name}: {json_rule(whole, strict=self._tool.strict)}")

    def _list(self, name: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> None:
        refuse_others(self._tool, schema, _LIST, path)
        items = schema.get("items")
        one = self._value(items, (*path, "items")) if isinstance(items, dict) else "any"
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            self._rules.append(f'{name}: "[" "]"')
            return
        more = f'("," {one}){{{max(least - 1, 0)},{"" if most is None else most - 1}}}'
        inner = f"{one} {more}" if least else f"({one} {more})?"
        self._rules.append(f'{name}: "[" {inner} "]"')

    def _object(self, name: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> None:
        for part in parts_of(schema, self._root):
            refuse_others(self._tool, part, _OBJECT, path)
        properties = properties_of(schema, self._root)
        others = schema.get("additionalProperties")
        if properties or others is False or not path:
            pairs = {
                key: f"{self._quoted(key + ':')} {self._value(one, (*path, 'properties', key))}"
                for key, one in properties.items()
            }
            self._rules.append(f'{name}: "{{" {name}_at_0 "}}"')
            self._rules += in_order(f"{name}_at", pairs, required_of(schema, self._root), '","')
        elif isinstance(others, dict):
            one = self._value(others, (*path, "additionalProperties"))
            key = r"/[^{}\[\],:<]+/"
            self._rules.append(f'{name}: "{{" ({key} ":" {one} ("," {key} ":" {one})*)? "}}"')
        else:
            self._rules.append(f"{name}: object")

    def _constant(self, value: Any) -> str:
        if isinstance(value, str):
            return " ".join(map(self._quoted, (_ESCAPE, value, _ESCAPE)))
        return self._quoted(json.dumps(value))


def _of_one_kind(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The schema less what says nothing of a kind."""
    return {
        name: value
        for name, value in schema.items()
        if kinds_of({name: value}) in (set(), {kind}) and name != "type"
    }


def _schema(given: Any) -> dict[str, Any]:
    """A schema that may be written as true."""
    return given if isinstance(given, dict) else {}


def _read(text: str, at: int) -> tuple[Any, int]:
    """A value of Gemma's notation, and where it ends."""
    if text.startswith("<escape>", at):
        end = text.index("<escape>", at + 8)
        return text[at + 8 : end], end + 8
    if text[at : at + 1] not in ("{", "["):
        found = re.compile(r"[^,}\]]*").match(text, at)
        assert found is not None
        return _plain(found[0].strip()), found.end()
    close = {"{": "}", "[": "]"}[text[at]]
    pairs: dict[str, Any] = {}
    values: list[Any] = []
    is_object, at = text[at] == "{", at + 1
    while not text.startswith(close, at):
        key = ""
        if is_object:
            colon = text.index(":", at)
            key, at = text[at:colon].strip().removeprefix("<escape>"), colon + 1
            key = key.removesuffix("<escape>")
        value, at = _read(text, at)
        pairs[key] = value
        values.append(value)
        if text.startswith(",", at):
            at += 1
        elif not text.startswith(close, at):
            raise ValueError("unclosed")
    return (pairs if is_object else values), at + 1


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
