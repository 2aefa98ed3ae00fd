"""What stands between the marks of a call: how it is constrained, and how it is read.

A grammar's source is llguidance's variant of Lark. A rule's name begins with the tool's number.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from edgeinfinite.runtime_py.tools.arguments import (
    arguments_of,
    complete,
    followed,
    kinds_of,
    required_of,
)
from edgeinfinite.runtime_py.tools.rules import Quote, any_of, in_order, json_rule, until
from edgeinfinite.runtime_py.tools.tool import Call, Tool
from edgeinfinite.runtime_py.tools.written_texts import refuse_others, text_rule

_NAME = re.compile(r"[\w.-]+")
_XML_END = "\n</parameter>\n"


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


def _parameters(tool: Tool) -> str:
    return json_rule({"type": "object"} | dict(tool.parameters), strict=tool.strict)


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
        yield f"body: {any_of(tools)}"
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
        yield f"one: {any_of(tools)}"
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
        yield f"body: {any_of(tools)}"
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
        yield f"one: {any_of(tools)}"
        for i, tool in enumerate(tools):
            yield f'tool_{i}: {quoted(tool.name + "(")} arg_{i}_0 ")"'
            values = {
                key: f"{quoted(key + '=')} {json_rule(schema, strict=tool.strict)}"
                for key, schema in _properties(tool)
            }
            yield from in_order(f"arg_{i}", values, _required(tool), '", "')

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
        yield f"body: {any_of(tools)}"
        yield until("text", _XML_END, quoted)
        for i, tool in enumerate(tools):
            head = quoted(f"\n<function={tool.name}>\n")
            yield f"tool_{i}: {head} arg_{i}_0 {quoted('</function>' + chr(10))}"
            texts: list[str] = []
            values = {
                key: f"{quoted(f'<parameter={key}>' + chr(10))} "
                f"({self._value(f'text_{i}_{j}', tool, schema, quoted, (key,), texts)})"
                for j, (key, schema) in enumerate(_properties(tool))
            }
            yield from in_order(f"arg_{i}", values, _required(tool), "")
            yield from texts

    def _value(
        self,
        name: str,
        tool: Tool,
        schema: Mapping[str, Any],
        quoted: Quote,
        path: tuple[str, ...],
        texts: list[str],
    ) -> str:
        """A value and what ends it; `texts` gets the rules of texts that it needs."""
        if _is_json(schema):
            return f"{json_rule(schema, strict=tool.strict)} {quoted(_XML_END)}"
        found = followed(schema)
        listed = found.get("enum", [found["const"]] if "const" in found else None)
        if isinstance(listed, list):
            return f"({' | '.join(quoted(str(one)) for one in listed)}) {quoted(_XML_END)}"
        if isinstance(choices := found.get("anyOf", found.get("oneOf")), list) and choices:
            refuse_others(tool, found, ("type", "anyOf", "oneOf"), ("properties", *path))
            each = (complete(one, schema) if isinstance(one, dict) else {} for one in choices)
            return " | ".join(
                self._value(f"{name}_{i}", tool, one, quoted, (*path, str(i)), texts)
                for i, one in enumerate(each)
            )
        if not kinds_of(found):
            return "text"
        texts += text_rule(name, tool, found, _XML_END, quoted, ("properties", *path))
        return name

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
