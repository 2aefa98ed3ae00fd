"""Texts in calls that stand as they are, and not as JSON: what bounds them in a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.tools.arguments import ANNOTATIONS
from edgeinfinite.runtime_py.tools.rules import Quote, until
from edgeinfinite.runtime_py.tools.tool import Tool

_HELD = ("type", "enum", "const", "minLength", "maxLength")


def refuse_others(
    tool: Tool, schema: Mapping[str, Any], held: tuple[str, ...], path: tuple[str, ...]
) -> None:
    """Refuses what a strict tool asks of a value and its form of calls can't hold to.

    Args:
        tool: whose argument it is; one that isn't strict is held to the rest.
        schema: of the value.
        held: keywords that are held to.
        path: where the schema stands in the tool's.

    Raises:
        EdgeInfiniteError: it is strict and has another keyword.
    """
    for name in schema if tool.strict else ():
        if name not in ANNOTATIONS and name not in held:
            place = ".".join((*path, name))
            raise EdgeInfiniteError(
                f"the tool {tool.name}: {place} can't be held to in the notation in which this "
                "model calls; leave it out, or the tool's strict"
            )


def text_rule(
    name: str,
    tool: Tool,
    schema: Mapping[str, Any],
    end: str,
    quoted: Quote,
    path: tuple[str, ...],
) -> Iterator[str]:
    """Rules for a text and what ends it; the first is `name`.

    Args:
        name: of the rule.
        tool: whose argument it is.
        schema: of the text.
        end: ends it; the text can't hold it.
        quoted: writes a text in a grammar.
        path: where the schema stands in the tool's.

    Raises:
        EdgeInfiniteError: the tool is strict, and its schema asks for more than a length.
    """
    refuse_others(tool, schema, _HELD, path)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if not least and most is None:
        yield until(name, end, quoted)
        return
    terminal = f"{name.upper()}_TEXT"
    mark = re.sub(r"[][\\/.*+?(){}|^$]", lambda found: "\\" + found[0], end).replace("\n", r"\n")
    often = f"{{{least},{'' if most is None else most}}}"
    yield until(name, end, quoted, terminal)
    yield f"{terminal}: /(?s:.{often})/ & ~/(?s:.*){mark}(?s:.*)/"
