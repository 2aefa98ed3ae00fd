"""JSON schemas as libraries write them: patterns rewritten to what a grammar has, faults found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)

_ANY_TEXT = {"binary", "html", "markdown", "multiline", "password", "path", "text", "textarea"}
"""Formats that every string has."""

_MOST_PATTERNS = 50
_DEEPEST = 200

_DECIMAL = re.compile(r"\^\(\?!\^\[-\+\.\]\*\$\)\[\+-\]\?0\*(.*)", re.DOTALL)
"""How pydantic's pattern of a Decimal begins: a look-ahead, by which it has a digit."""

_PLACES = re.compile(
    r"\(\?:\\d\{0,(\d+)\}\|\(\?=\[\\d\.\]\{1,(\d+)\}0\*\$\)\\d\{0,(\d+)\}\\\.\\d\{0,(\d+)\}0\*\$\)"
)
_DIGITS = re.compile(r"\(\?:\\d\{0,(\d+)\}\|\(\?=\[\\d\.\]\{1,(\d+)\}0\*\$\)\\d\*\\\.\\d\*0\*\$\)")
_FRACTION = re.compile(r"\\d\*\\\.\?\\d\{0,(\d+)\}0\*\$")
_MOST_DIGITS = 100


def understood(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what llguidance lacks written otherwise, where that means the same.

    Pydantic's patterns of a Decimal get no look-ahead; where such a pattern doesn't say where the
    number ends, it ends the text. A format that every string has is left out.
    """
    if not any(_changed(part) for _, part in subschemas(schema)):
        return schema
    copy: dict[str, Any] = json.loads(json.dumps(schema))
    for _, part in subschemas(copy):
        part.update(_changed(part))
        for name in [name for name, value in part.items() if value is _LEFT_OUT]:
            del part[name]
    return copy


_LEFT_OUT = object()


def _changed(part: dict[str, Any]) -> dict[str, Any]:
    pattern, form = part.get("pattern"), part.get("format")
    new: dict[str, Any] = {}
    if isinstance(pattern, str) and (decimal := decimal_pattern(pattern)) is not None:
        new["pattern"] = decimal
    if isinstance(form, str) and form in _ANY_TEXT:
        new["format"] = _LEFT_OUT
    if form == "ipvanyaddress" and "anyOf" not in part:
        new |= {"format": _LEFT_OUT, "anyOf": [_text("ipv4"), _text("ipv6")]}
    return new


def _text(form: str) -> dict[str, str]:
    return {"type": "string", "format": form}


def decimal_pattern(pattern: str) -> str | None:
    """Pydantic's pattern of a Decimal without its look-aheads; None for any other pattern."""
    begun = _DECIMAL.fullmatch(pattern)
    if begun is None:
        return None
    rest = begun[1]
    if rest == r"\d*\.?\d*$":
        return r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
    if found := _FRACTION.fullmatch(rest):
        return rf"^[+-]?([0-9]+(\.{_zeros(int(found[1]))})?|\.{_digit(int(found[1]))})$"
    if found := _PLACES.fullmatch(rest):
        whole, most, again, fraction = map(int, found.groups())
        if whole != again or max(whole, fraction) > _MOST_DIGITS:
            return None
        fraction = min(fraction, most - 1)
        return rf"^[+-]?({_digit(whole, '0*')}(\.{_zeros(fraction)})?|\.{_digit(fraction)})$"
    if found := _DIGITS.fullmatch(rest):
        most = int(found[1])
        if int(found[2]) != most + 1 or most > _MOST_DIGITS:
            return None
        parts = [rf"0*[0-9]{{{whole}}}\.{_zeros(most - whole)}" for whole in range(1, most + 1)]
        parts += [rf"0+\.{_zeros(most)}", rf"\.{_digit(most)}", _digit(most, "0*")]
        return rf"^[+-]?({'|'.join(parts)})$"
    return None


def _zeros(most: int) -> str:
    """Up to `most` digits, then zeros."""
    return rf"[0-9]{{0,{most}}}0*" if most else "0*"


def _digit(most: int, before: str = "") -> str:
    """At least a digit, up to `most` besides zeros before or behind them."""
    if not most:
        return "0+"
    counted = rf"[0-9]{{1,{most}}}"
    return rf"(0+|0*{counted})" if before else rf"({counted}0*|0+)"


def culprit(
    schema: dict[str, Any], reason: str, refusal: Callable[[dict[str, Any]], str | None]
) -> str:
    """Where in a schema the fault is, to stand before the reason; "" where that isn't known.

    Args:
        schema: the whole.
        reason: why the library refuses it.
        refusal: what the library says of another schema; None for nothing.
    """
    if found := re.search(r"Unimplemented keys: \[(.*)\]", reason):
        keys = re.findall(r'"([^"]+)"', found[1])
        return _first(schema, lambda part: next((key for key in keys if key in part), None))
    if found := re.search(r"(?:Unknown format|Invalid type): (\S+)", reason):
        word = found[1]
        return _first(
            schema, lambda part: None if word not in (part.get("format"), part.get("type")) else ""
        )
    if "regex" not in reason and "lookaround" not in reason:
        return ""
    seen: dict[str, str] = {}
    for path, part in subschemas(schema):
        for pattern in _patterns(part):
            seen.setdefault(pattern, path)
    for pattern, path in list(seen.items())[:_MOST_PATTERNS]:
        if refusal({"type": "string", "pattern": pattern}) is not None:
            return f"{path or 'the schema'} has the pattern {pattern[:80]!r}: "
    return ""


def _first(schema: dict[str, Any], fault: Callable[[dict[str, Any]], str | None]) -> str:
    for path, part in subschemas(schema):
        name = fault(part)
        if name is not None and path:
            return f"{path} has {name}: " if name else f"{path}: "
    return ""


def _patterns(part: dict[str, Any]) -> Iterator[str]:
    if isinstance(part.get("pattern"), str):
        yield part["pattern"]
    if isinstance(part.get("patternProperties"), dict):
        yield from part["patternProperties"]


def subschemas(schema: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """All parts of a schema that are schemas, with their places, such as `properties.a.anyOf[1]`.

    What stands in `enum`, `const` or `default` is data and no schema.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    yield path, schema
    dot = f"{path}." if path else ""
    for name in _MAPS:
        parts = schema.get(name)
        for key, part in list(parts.items()) if isinstance(parts, dict) else ():
            yield from subschemas(part, f"{dot}{name}.{key}", depth + 1)
    for name in (*_LISTS, "items"):
        parts = schema.get(name)
        for i, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from subschemas(part, f"{dot}{name}[{i}]", depth + 1)
    for name in _SINGLE:
        yield from subschemas(schema.get(name), f"{dot}{name}", depth + 1)
