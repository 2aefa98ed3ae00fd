"""Where in a JSON schema that is what a grammar can't hold to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgeinfinite.runtime_py.answer.grammars.json_schemas import parts_of, subschemas
from edgeinfinite.runtime_py.answer.grammars.process import TOO_MUCH

Refusal = Callable[[dict[str, Any]], str | None]
"""What the library says of a schema; None for nothing."""

_LONGEST_REASON = 200
_LONGEST_PATTERN = 80
_SECONDS = 5.0
"""For looking for the place."""

_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True)
class Fault:
    """What is wrong, and where.

    Args:
        said: for the user, without what to do about it.
        part: the schema that has the keyword.
        keyword: what can't be held to; None where leaving something out doesn't help.
    """

    said: str
    part: dict[str, Any]
    keyword: str | None = None


def fault_of(schema: dict[str, Any], reason: str, refusal: Refusal) -> Fault:
    """Finds a fault of a schema that was refused.

    Args:
        schema: the whole.
        reason: why the library refuses it.
        refusal: asked of parts of it.
    """
    if TOO_MUCH in reason:
        return Fault(short(reason), schema)
    if found := re.search(r"Unimplemented keys: \[(.*)\]", reason):
        keys = re.findall(r'"([^"]+)"', found[1])
        for path, part in subschemas(schema):
            for key in keys:
                if key in part:
                    return _fault(path, part, key, "is not supported")
    if found := re.search(r"Unknown format: (\S+)", reason):
        for path, part in subschemas(schema):
            if part.get("format") == found[1]:
                return _fault(path, part, "format", f"{found[1]!r:.80} is not supported")
    return _found(schema, reason, refusal)


def _found(schema: dict[str, Any], reason: str, refusal: Refusal) -> Fault:
    """The innermost part that is refused by itself."""
    definitions = {name: schema[name] for name in _DEFINITIONS if name in schema}
    until = time.monotonic() + _SECONDS
    path, part, inner = "", schema, True
    while inner:
        inner = False
        for place, child in parts_of(part, path):
            if not isinstance(child, dict) or time.monotonic() > until:
                continue
            if (said := refusal(definitions | child)) is not None:
                path, part, reason, inner = place, child, said, True
                break
    if "oneOf constraints" in reason and "oneOf" in part:
        return _fault(
            path, part, "oneOf", "is supported where its choices exclude each other, else anyOf is"
        )
    if "min/maxProperties" in reason:
        key = "minProperties" if "minProperties" in part else "maxProperties"
        return _fault(
            path, part, key, 'is supported where all of "properties" are required, not otherwise'
        )
    if found := re.search(r"Invalid type: (\S+)", reason):
        return _fault(path, part, "type", f"{found[1]!r:.80} is no type of JSON Schema")
    if "pattern" in part and re.search("regex|lookaround", reason):
        pattern = str(part["pattern"])[:_LONGEST_PATTERN]
        return _fault(path, part, "pattern", f"{pattern!r} can't be used: {short(reason)}")
    return Fault(f"{path}: {short(reason)}" if path else short(reason), part)


def _fault(path: str, part: dict[str, Any], key: str, said: str) -> Fault:
    return Fault(f"{path}.{key} {said}" if path else f"{key} {said}", part, key)


def short(message: str) -> str:
    """The line of the library's message that says what is wrong."""
    lines = message.splitlines() or ["no reason given"]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return " ".join((told or lines)[0].split())[:_LONGEST_REASON]
