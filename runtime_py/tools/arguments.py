"""A tool's arguments one by one, for forms of calls that write each for itself.

A schema that an argument refers to stands elsewhere in the tool's. So each argument's schema brings
all of that along, under a name of its own, and its references lead there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from edgeinfinite.runtime_py.answer.grammars.json_schemas import subschemas

_WHOLE = "the_tool"
_DEEPEST = 30
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_NAMES |= {list: "array", dict: "object"}
_OF_KEYWORDS = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "minProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("pattern", "format", "minLength", "maxLength"), "string"),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), "number"),
}
"""Keywords that say nothing of other kinds of values."""


ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
) | {"$schema", "$id", "$comment", "$defs", "definitions"}
"""Keywords that bound no value."""


def arguments_of(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The schema of each argument, complete in itself.

    Args:
        parameters: the schema of all of them, an object.
    """
    found = properties_of(parameters, parameters)
    return {name: complete(schema, parameters) for name, schema in found.items()}


def properties_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The schema of each property of an object, as it stands.

    Args:
        schema: of the object.
        root: in which its references lead.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in parts_of(schema, root):
        properties = part.get("properties")
        for name, one in properties.items() if isinstance(properties, dict) else ():
            found.setdefault(name, one if isinstance(one, dict) else {})
    return found


def required_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> set[str]:
    """The names of the properties that can't be left out.

    Args:
        schema: of the object.
        root: in which its references lead; None for itself.
    """
    names: set[str] = set()
    for part in parts_of(schema, schema if root is None else root):
        required = part.get("required")
        names.update(required if isinstance(required, list) else ())
    return names


def kinds_of(schema: Any, root: Mapping[str, Any] | None = None, depth: int = 0) -> set[str]:
    """The kinds of JSON values that a schema takes, such as `string`; empty where it doesn't say.

    Args:
        schema: the schema.
        root: in which its references lead; None for itself.
        depth: of references followed so far.
    """
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return set()
    root = schema if root is None else root
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return {kinds}
    if isinstance(kinds, list):
        return {kind for kind in kinds if isinstance(kind, str)}
    if isinstance(schema.get("enum"), list):
        return {_NAMES.get(type(one), "") for one in schema["enum"]}
    if "const" in schema:
        return {_NAMES.get(type(schema["const"]), "")}
    if (target := _target(schema.get("$ref"), root)) is not None:
        return kinds_of(target, root, depth + 1)
    for name in ("anyOf", "oneOf"):
        if isinstance(schema.get(name), list):
            each = [kinds_of(one, root, depth + 1) for one in schema[name]]
            return set().union(*each) if all(each) else set()
    for one in schema.get("allOf") or ():
        if found := kinds_of(one, root, depth + 1):
            return found
    return {kind for name, kind in _OF_KEYWORDS.items() if name in schema}


def refers(schema: Mapping[str, Any]) -> bool:
    """Whether a part of a schema is said elsewhere."""
    parts = subschemas(dict(schema))
    return any("$ref" in part or "$dynamicRef" in part for _, part in parts)


def followed(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """What a schema that says nothing besides refers to; else the schema.

    Args:
        schema: see there.
        root: in which its references lead; None for itself.
    """
    found: Any = schema
    for _ in range(_DEEPEST):
        said = [name for name in found if name not in ANNOTATIONS]
        target: Any = None
        if said == ["allOf"] and isinstance(found["allOf"], list) and len(found["allOf"]) == 1:
            (target,) = found["allOf"]
        elif said == ["$ref"]:
            target = _target(found["$ref"], schema if root is None else root)
        if not isinstance(target, Mapping):
            break
        found = target
    return found


def parts_of(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0
) -> Iterator[Mapping[str, Any]]:
    """The schema and those that hold for the same value, too.

    Args:
        schema: see there.
        root: in which its references lead.
        depth: of references followed so far.
    """
    if depth > _DEEPEST:
        return
    yield schema
    target = _target(schema.get("$ref"), root)
    others = schema.get("allOf")
    for one in (target, *(others if isinstance(others, list) else ())):
        if isinstance(one, Mapping):
            yield from parts_of(one, root, depth + 1)


def complete(schema: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with all that its references lead to.

    Args:
        schema: a part of `root`.
        root: in which its references lead.
    """
    if not refers(schema):
        return schema
    base = root.get("$id")
    copy, whole = json.loads(json.dumps(schema)), json.loads(json.dumps(dict(root)))
    whole.pop("$id", None)
    for _, part in (*subschemas(copy), *subschemas(whole)):
        reference = part.get("$ref")
        if not isinstance(reference, str):
            continue
        if isinstance(base, str) and base and reference.startswith(base.rstrip("#")):
            reference = "#" + reference.partition("#")[2]
        if reference == "#" or reference.startswith("#/"):
            part["$ref"] = f"#/$defs/{_WHOLE}{reference[1:]}"
    return {**copy, "$defs": {_WHOLE: whole}}


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference within a schema leads to; None if it isn't one."""
    if not isinstance(reference, str):
        return None
    base = root.get("$id")
    if isinstance(base, str) and base and reference.startswith(base.rstrip("#")):
        reference = "#" + reference.partition("#")[2]
    if not reference.startswith("#"):
        return None
    found: Any = root
    for name in reference[1:].split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found
