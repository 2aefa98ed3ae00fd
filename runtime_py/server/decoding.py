"""A request's body to the type that judges it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from edgeinfinite.runtime_py.server.problems import ApiProblem

_Request = TypeVar("_Request", bound=msgspec.Struct)

_NAMES_SHOWN = 20


def object_of(body: bytes) -> dict[str, Any]:
    """The fields of a JSON object.

    Raises:
        ApiProblem: 400, the body is none.
    """
    try:
        fields = msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))  # .NET's clients send it
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiProblem(400, f"the body isn't JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ApiProblem(400, f"the body is a JSON {_name(fields)}; give an object")
    return fields


def only_known(
    given: Mapping[str, Any],
    understood: Iterable[str],
    *,
    ignored: Collection[str],
    neutral: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """The fields that mean something here. null is as good as nothing.

    Args:
        given: a request's fields.
        understood: names of fields that its kind of request has.
        ignored: names of fields that never change an answer.
        neutral: values by which a field changes nothing.

    Raises:
        ApiProblem: 400, a field isn't understood and may change the answer.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    names = set(understood)
    unknown = sorted(
        name
        for name in set(fields) - names - set(ignored)
        if not any(_same(fields[name], one) for one in neutral.get(name, ()))
    )
    if unknown:
        named = ", ".join(name[:40] for name in unknown[:_NAMES_SHOWN])
        raise ApiProblem(
            400,
            f"not supported here: {named}; leave it out",
            param=unknown[0],
            code="unsupported_parameter",
        )
    return {name: value for name, value in fields.items() if name in names}


def converted(fields: Any, kind: type[_Request], where: str = "") -> _Request:
    """Fields as a request's type.

    Args:
        fields: without those that say nothing.
        kind: judges them.
        where: they stand in the request; "" for all of it.

    Raises:
        ApiProblem: 400; the message names the field that is wrong.
    """
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        inner = re.sub(r"^`\$\.?|`$", "", path)
        param = ".".join(part for part in (where, inner) if part) or None
        place = f"{param}: " if param else ""
        raise ApiProblem(400, f"{place}{message}", param=param) from error


def _name(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _same(value: Any, neutral: Any) -> bool:
    """Equality by which true isn't 1."""
    return bool(value == neutral) and isinstance(value, bool) == isinstance(neutral, bool)
