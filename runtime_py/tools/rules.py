"""Parts of grammars that several forms of calls share.

A grammar's source is llguidance's variant of Lark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgeinfinite.runtime_py.tools.tool import Tool

_SPACED = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As `json.dumps` writes it."""

Quote = Callable[[str], str]
"""Writes a text in a grammar: quoted, or as the special token that it is."""


def json_rule(schema: Mapping[str, Any], *, strict: bool) -> str:
    """The part of a grammar that is JSON of a schema."""
    return "%json " + json.dumps(dict(schema) | {"x-guidance": _SPACED | {"lenient": not strict}})


def until(rule: str, end: str, quoted: Quote, before: str = "/(?s:.*)/") -> str:
    """A rule for a text, and `end` where it first comes.

    Args:
        rule: its name.
        end: what ends the text.
        quoted: writes it.
        before: what the text may be, as a terminal's name or a pattern.
    """
    mark = quoted(end)
    return f"{rule}{'' if is_special(mark) else '[lazy]'}: {before} {mark}"


def is_special(mark: str) -> bool:
    """Whether what `Quote` wrote is a special token."""
    return mark.startswith("<")


def any_of(tools: Sequence[Tool]) -> str:
    """One of the tools' rules."""
    return " | ".join(f"tool_{i}" for i in range(len(tools)))


def in_order(
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
