"""What stands between the marks of a call: how it is constrained, and how it is read.

A grammar's source is llguidance's variant of Lark. A rule's name begins with the tool's number.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from edgeinfinite.runtime_py.tools.arguments import (
    arguments_of,
    followed,
    kinds_of,
    required_of,
)
from edgeinfinite.runtime_py.tools.tool import Call, Tool

_SPACED = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As `json.dumps` writes it."""

_NAME = re.compile(r"[\w.-]+")


Quote = Callable[[str], str]
"""Writes a text in a grammar: quoted, or as the special token that it is."""


class Body(Protocol):
    """A kind of body."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts of it that may be special tokens."""

    @property
    def lists(self) -> bool:
        """Whether one body holds all calls."""

    @property
    def streams(self) -> re.Pattern[str] | None:
        """Matches a body up to where its arguments begin as JSON, told as they are written.

        The group `name` is the tool's, as JSON or as it stands. None where a call is told whole.
        """

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        """Rules of a grammar; the first one is `body`."""

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        """The calls of a body.

        Raises:
            ValueError: it isn't one.
        """


def json_rule(schema: Mapping[str, Any], *, strict: bool) -> str:
    """The part of a grammar that is JSON of a schema."""
    return "%json " + json.dumps(dict(schema) | {"x-guidance": _SPACED | {"lenient": not strict}})


def _parameters(tool: Tool) -> str:
    return json_rule({"type": "object"} | dict(tool.parameters), strict=tool.strict)


def _until(rule: str, end: str, quoted: Quote) -> str:
    """A rule for any text that ends where `end` first comes."""
    mark = quoted(end)
    is_special = mark.startswith("<")
    return f"{rule}{'' if is_special else '[lazy]'}: /(?s:.*)/ {mark}"


def _any_of(tools: Sequence[Tool]) -> str:
    return " | ".join(f"tool_{i}" for i in range(len(tools)))


class JsonCall:
    """`{"name": ..., "arguments": {...}}`.

    Args:
        arguments: the key of the arguments.
        edge: white space around it.
    """

    marks: tuple[str, ...] = ()
    lists = False

    def __init__(self, arguments: str, edge: str) -> None:
        self._arguments = arguments
        self._edge = edge
        self.streams = re.compile(
            r'\s*\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"name"\s*:\s*'
            r'(?P<name>"(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
        )

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        yield f"body: {_any_of(tools)}"
        for i, tool in enumerate(tools):
            yield f"tool_{i}: {self.rule(tool, quoted)}"

    def rule(self, tool: Tool, quoted: Quote) -> str:
        """One call."""
        head = f'{self._edge}{{"name": {json.dumps(tool.name)}, "{self._arguments}": '
        return f"{quoted(head)} {_parameters(tool)} {quoted('}' + self._edge)}"

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        return [_call_of(json.loads(body))]


class JsonCalls:
    """A list of calls: ` [{"name": ..., "arguments": {...}}, ...]`."""

    marks: tuple[str, ...] = ()
    lists = True
    streams: re.Pattern[str] | None = None

    def __init__(self, arguments: str) -> None:
        self._one = JsonCall(arguments, "")

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        more = ' (", " one)*' if parallel else ""
        yield f'body: " [" one{more} "]"'
        yield f"one: {_any_of(tools)}"
        for i, tool in enumerate(tools):
            yield f"tool_{i}: {self._one.rule(tool, quoted)}"

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        given = json.loads(body)
        if not isinstance(given, list) or not given:
            raise ValueError("no list of calls")
        return [_call_of(one) for one in given]


class NamedJson:
    """`name[ARGS]{...}`.

    Args:
        mark: between the two.
    """

    lists = False

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self.marks: tuple[str, ...] = (mark,)
        self.streams = re.compile(rf"\s*(?P<name>[\w.-]+)\s*{re.escape(mark)}\s*(?=\{{)")

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        yield f"body: {_any_of(tools)}"
        for i, tool in enumerate(tools):
            yield f"tool_{i}: {quoted(tool.name)} {quoted(self._mark)} {_parameters(tool)}"

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        name, _, arguments = body.partition(self._mark)
        return [_call_of({"name": name.strip(), "arguments": json.loads(arguments)})]


class PythonCalls:
    """`[name(key="text", other=1), ...]`, of literals."""

    marks: tuple[str, ...] = ()
    lists = True
    streams: re.Pattern[str] | None = None

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        more = ' (", " one)*' if parallel else ""
        yield f'body: "[" one{more} "]"'
        yield f"one: {_any_of(tools)}"
        for i, tool in enumerate(tools):
            yield f'tool_{i}: {quoted(tool.name + "(")} arg_{i}_0 ")"'
            values = {
                key: f"{quoted(key + '=')} {json_rule(schema, strict=tool.strict)}"
                for key, schema in _properties(tool)
            }
            yield from _in_order(f"arg_{i}", values, _required(tool), '", "')

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        try:
            listed = ast.parse(body.strip(), mode="eval").body
            calls = [self._call(one) for one in getattr(listed, "elts", [listed])]
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(str(error)) from error
        if not calls:
            raise ValueError("no calls")
        return calls

    def _call(self, node: ast.expr) -> Call:
        if not isinstance(node, ast.Call) or node.args or not all(one.arg for one in node.keywords):
            raise ValueError("no call by keywords")
        given = {word.arg: _literal(word.value) for word in node.keywords}
        return _call_of({"name": ast.unparse(node.func), "arguments": given})


class XmlCall:
    """`<function=name>`, and `<parameter=key>` each with a text or JSON."""

    marks: tuple[str, ...] = ()
    lists = False
    streams: re.Pattern[str] | None = None

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        yield f"body: {_any_of(tools)}"
        end = "\n</parameter>\n"
        yield _until("text", end, quoted)
        for i, tool in enumerate(tools):
            head = quoted(f"\n<function={tool.name}>\n")
            yield f"tool_{i}: {head} arg_{i}_0 {quoted('</function>' + chr(10))}"
            values = {
                key: f"{quoted(f'<parameter={key}>' + chr(10))} "
                + self._value(schema, quoted, end, strict=tool.strict)
                for key, schema in _properties(tool)
            }
            yield from _in_order(f"arg_{i}", values, _required(tool), "")

    def _value(self, schema: Mapping[str, Any], quoted: Quote, end: str, *, strict: bool) -> str:
        if _is_json(schema):
            return f"{json_rule(schema, strict=strict)} {quoted(end)}"
        listed = followed(schema).get("enum")
        if isinstance(listed, list):
            return f"({' | '.join(quoted(str(one)) for one in listed)}) {quoted(end)}"
        return "text"

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        found = re.fullmatch(r"\s*<function=([^>\n]+)>(.*?)</function>\s*", body, re.DOTALL)
        if found is None:
            raise ValueError("no function")
        name = found[1].strip()
        schemas = dict(_properties(tools[name])) if name in tools else {}
        given: dict[str, Any] = {}
        pattern = r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>"
        for key, value in re.findall(pattern, found[2], re.DOTALL):
            given[key] = _read(value, schemas.get(key, {}))
        return [(name, given)]


def _read(value: str, schema: Mapping[str, Any]) -> Any:
    """An argument's value; where it may be null, a text that says so is."""
    is_null = value.strip() == "null" and "null" in kinds_of(schema)
    return json.loads(value) if is_null or _is_json(schema) else value


class GemmaCall:
    """`call:name{key:<escape>text<escape>,other:1}`."""

    marks: tuple[str, ...] = ("<escape>",)
    lists = False
    streams: re.Pattern[str] | None = None

    def rules(self, tools: Sequence[Tool], quoted: Quote, *, parallel: bool) -> Iterator[str]:
        yield f"body: {_any_of(tools)}"
        yield _until("text_end", "<escape>", quoted)
        yield r"INTEGER: /-?(0|[1-9][0-9]*)/"
        yield r"NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/"
        yield f"text: {quoted('<escape>')} text_end"
        yield 'any: text | NUMBER | "true" | "false" | "null" | list | object'
        yield 'list: "[" (any ("," any)*)? "]"'
        yield 'object: "{" (pair ("," pair)*)? "}"'
        yield r'pair: /[^{}\[\],:<]+/ ":" any'
        for i, tool in enumerate(tools):
            yield f'tool_{i}: {quoted(f"call:{tool.name}{{")} arg_{i}_0 "}}"'
            values = {
                key: f"{quoted(key + ':')} ({self._value(schema, quoted)})"
                for key, schema in _properties(tool)
            }
            yield from _in_order(f"arg_{i}", values, _required(tool), '","')

    def _value(self, schema: Mapping[str, Any], quoted: Quote) -> str:
        schema = followed(schema)
        if isinstance(schema.get("enum"), list):
            return " | ".join(self._constant(one, quoted) for one in schema["enum"])
        kind = schema.get("type")
        if kind == "array":
            items = schema.get("items")
            one = self._value(items, quoted) if isinstance(items, dict) else "any"
            return f'"[" (({one}) ("," ({one}))*)? "]"'
        plain = {"string": "text", "integer": "INTEGER", "number": "NUMBER", "object": "object"}
        if kind == "boolean":
            return '"true" | "false"'
        return plain.get(kind, "any") if isinstance(kind, str) else "any"

    def _constant(self, value: Any, quoted: Quote) -> str:
        if isinstance(value, str):
            return f"{quoted('<escape>')} {quoted(value)} {quoted('<escape>')}"
        return quoted(json.dumps(value))

    def calls(self, body: str, tools: Mapping[str, Tool]) -> list[Call]:
        found = re.match(r"\s*call:([\w.-]+)\s*", body)
        if found is None:
            raise ValueError("no call")
        value, end = _gemma_value(body, found.end())
        if body[end:].strip() or not isinstance(value, dict):
            raise ValueError("more than a call")
        return [(found[1], value)]


def _gemma_value(text: str, at: int) -> tuple[Any, int]:
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
        value, at = _gemma_value(text, at)
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


def _call_of(given: Any) -> Call:
    if isinstance(given, dict):
        name = given.get("name")
        arguments = given.get("arguments", given.get("parameters"))
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if isinstance(name, str) and _NAME.fullmatch(name) and isinstance(arguments, dict):
            return name, arguments
    raise ValueError("no name and arguments")


def _literal(node: ast.expr | None) -> Any:
    """What a literal of Python's, or of JSON's, is in JSON."""
    words = {"true": True, "false": False, "null": None}
    if isinstance(node, ast.Name) and node.id in words:
        return words[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_constant(key)): _literal(one) for key, one in pairs}
    return _constant(node)


def _constant(node: ast.expr | None) -> str | int | float | None:
    value = ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else ...
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("no literal that JSON knows")


def _properties(tool: Tool) -> list[tuple[str, dict[str, Any]]]:
    """A tool's arguments, each with its schema, what it refers to included."""
    return list(arguments_of(tool.parameters).items())


def _required(tool: Tool) -> set[str]:
    return required_of(tool.parameters)


def _is_json(schema: Mapping[str, Any]) -> bool:
    """Whether a value is written as JSON, and not as the text that it is."""
    kinds = kinds_of(schema)
    return bool(kinds) and "string" not in kinds


def _in_order(
    rule: str, values: Mapping[str, str], required: set[str], separator: str
) -> Iterator[str]:
    """Rules for arguments in their order, those that aren't required perhaps left out.

    `RULE_i` is what may follow at argument i with nothing before it, `RULE_more_i` with something.
    """
    keys = list(values)
    for i, key in enumerate(keys):
        more = f"{rule}_more_{i + 1}"
        leave_out = key not in required
        yield f"{rule}_{i}: {values[key]} {more}" + (f" | {rule}_{i + 1}" if leave_out else "")
        follows = f"{separator} {values[key]} {more}".strip()
        yield f"{rule}_more_{i}: {follows}" + (f" | {more}" if leave_out else "")
    yield f'{rule}_{len(keys)}: ""'
    yield f'{rule}_more_{len(keys)}: ""'
