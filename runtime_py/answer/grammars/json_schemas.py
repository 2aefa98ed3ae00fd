"""JSON schemas as libraries write them: what grammars lack is written otherwise, where that means
the same, and what changes nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from edgeinfinite.runtime_py.answer.grammars.patterns import without_look_around

_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)

_ANY_TEXT = {
    *("binary", "directory-path", "file-path", "html", "markdown", "multiline", "password"),
    *("path", "text", "textarea"),
}
"""Formats that every string has."""

_FORMATS = {
    *("date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4"),
    *("ipv6", "iri", "iri-reference", "json-pointer", "regex", "relative-json-pointer", "time"),
    *("uri", "uri-reference", "uri-template", "uuid"),
}
"""Those that JSON Schema defines. Any other is a hint, which a pattern beside it may spell out."""

_BASE64 = "^([{0}]{{4}})*([{0}]{{2}}==|[{0}]{{3}}=)?$"
_WRITTEN = {
    "base64": _BASE64.format("A-Za-z0-9+/"),
    "base64url": _BASE64.format("A-Za-z0-9_-"),
} | {
    f"uuid{version}": f"^[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-{version}[0-9a-fA-F]{{3}}"
    "-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
    for version in range(1, 9)
}
"""Formats of pydantic's as patterns."""

_REFERS = ("$dynamicRef", "$ref", "allOf", "anyOf", "dependentSchemas", "if", "oneOf")
"""By which another schema may judge the same value."""

_DEEPEST = 200
_LEFT_OUT = object()


def understood(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what llguidance lacks written otherwise, where that means the same.

    Patterns that look ahead (`patterns`), pydantic's formats, names of properties that have a list
    or a pattern, and keywords at values without effect. Where pydantic's pattern of a Decimal
    doesn't say where the number ends, it ends the text.
    """
    if not any(_changed(part, schema) for _, part in subschemas(schema)):
        return schema
    copy: dict[str, Any] = json.loads(json.dumps(schema))
    for _, part in subschemas(copy):
        part.update(_changed(part, copy))
        for name in [name for name, value in part.items() if value is _LEFT_OUT]:
            del part[name]
    return copy


def _changed(part: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a part that change; `_LEFT_OUT` for those that go."""
    new = _text(part) | _without_effect(part) | _unevaluated(part)
    left = {name: value for name, value in (part | new).items() if value is not _LEFT_OUT}
    return new | _named(left, root)


def _text(part: dict[str, Any]) -> dict[str, Any]:
    pattern, form = part.get("pattern"), part.get("format")
    new: dict[str, Any] = {}
    patterns: list[str] = []
    if isinstance(pattern, str) and (plain := without_look_around(pattern)) is not None:
        new["pattern"], *patterns = plain
    if not isinstance(form, str):
        form = ""
    if form == "ipvanyaddress" and "anyOf" not in part:
        new["format"] = _LEFT_OUT
        new["anyOf"] = [{"type": "string", "format": one} for one in ("ipv4", "ipv6")]
    elif form in _ANY_TEXT or (form and form not in _FORMATS and isinstance(pattern, str)):
        new["format"] = _LEFT_OUT
    elif form in _WRITTEN:
        new["format"] = _LEFT_OUT
        patterns.append(_WRITTEN[form])
    if patterns and "pattern" not in part:
        new["pattern"] = patterns.pop()
    others = part.get("allOf", [])
    if patterns and isinstance(others, list):
        new["allOf"] = [*others, *({"pattern": one} for one in patterns)]
    return new


def _without_effect(part: dict[str, Any]) -> dict[str, Any]:
    """Keywords at values at which nothing is asked for."""
    names = []
    most = part.get("maxItems")
    if part.get("uniqueItems") is False or (type(most) is int and most < 2):
        names.append("uniqueItems")
    if "contains" not in part:
        names += ["minContains", "maxContains"]
    elif part.get("minContains") == 0 and "maxContains" not in part:
        names += ["contains", "minContains"]
    names += [name for name in ("then", "else") if "if" not in part]
    if "then" not in part and "else" not in part:
        names.append("if")
    names += [
        name
        for name in ("dependencies", "dependentRequired", "dependentSchemas")
        if part.get(name) == {}
    ]
    if part.get("not") is False:
        names.append("not")
    return {name: _LEFT_OUT for name in names if name in part}


def _unevaluated(part: dict[str, Any]) -> dict[str, Any]:
    """What holds for the rest is what holds for everything else, if no other schema takes part."""
    new: dict[str, Any] = {}
    alone = not any(name in part for name in _REFERS)
    for name, other in (
        ("unevaluatedProperties", "additionalProperties"),
        ("unevaluatedItems", "items"),
    ):
        rest = part.get(name)
        listed = isinstance(part.get(other), list)  # items before 2020-12: the first of them alone
        if rest is None or not ((alone and not listed) or _anything(rest)):
            continue
        new[name] = _LEFT_OUT
        if other not in part and not _anything(rest):
            new[other] = rest
    return new


def _anything(schema: Any) -> bool:
    return schema is True or schema == {}


def _named(part: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """An object whose properties' names have a list or a pattern."""
    names = part.get("propertyNames")
    if isinstance(names, dict) and names.keys() == {"$ref"}:
        names = _definition(root, names["$ref"])
    if _anything(names) or names == {"type": "string"}:
        return {"propertyNames": _LEFT_OUT}
    others = ("properties", "patternProperties", "unevaluatedProperties")
    if not isinstance(names, dict) or any(name in part for name in others):
        return {}
    asked = {name for name in names if name not in ("title", "description", "type")}
    value = part.get("additionalProperties", True)
    rest = {"propertyNames": _LEFT_OUT, "additionalProperties": False}
    if asked == {"enum"} and isinstance(names["enum"], list):
        listed = [name for name in names["enum"] if isinstance(name, str)]
        return rest | {"properties": dict.fromkeys(listed, value)}
    if asked == {"const"} and isinstance(names["const"], str):
        return rest | {"properties": {names["const"]: value}}
    pattern = names.get("pattern")
    if asked == {"pattern"} and isinstance(pattern, str):
        plain = without_look_around(pattern) or (pattern,)
        if len(plain) == 1:
            return rest | {"patternProperties": {plain[0]: value}}
    return {}


def _definition(root: dict[str, Any], reference: Any) -> Any:
    """What `#/$defs/NAME` refers to; None for any other reference."""
    where = str(reference).split("/")
    if len(where) != 3 or where[:2] not in (["#", "$defs"], ["#", "definitions"]):
        return None
    definitions = root.get(where[1])
    return definitions.get(where[2]) if isinstance(definitions, dict) else None


def subschemas(schema: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """All parts of a schema that are schemas, with their places, such as `properties.a.anyOf[1]`.

    What stands in `enum`, `const` or `default` is data and no schema.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    yield path, schema
    for place, part in parts_of(schema, path):
        yield from subschemas(part, place, depth + 1)


def parts_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The parts of a schema that are schemas, not those of them."""
    dot = f"{path}." if path else ""
    for name in _MAPS:
        parts = schema.get(name)
        for key, part in list(parts.items()) if isinstance(parts, dict) else ():
            yield f"{dot}{name}.{key}", part
    for name in (*_LISTS, "items"):
        parts = schema.get(name)
        for i, part in enumerate(parts if isinstance(parts, list) else ()):
            yield f"{dot}{name}[{i}]", part
    for name in _SINGLE:
        if isinstance(schema.get(name), dict):
            yield f"{dot}{name}", schema[name]
