r"""Word's `EQ` fields as text: formulas, and readings above words, from before Word had formulas.

A field such as `EQ \f(1,2)` draws what its instruction says, and has no text that could be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgeinfinite.runtime_py.documents.formulas import (
    fraction,
    local_name,
    matrix,
    root,
    scripts,
)

_EQ = re.compile(r"\s*EQ\b", re.I)
_FORMAT = re.compile(r"\\\*\s*(?:\"[^\"]*\"|[^\s\\()]+)")
"""How a result is to look; it says nothing."""

_SWITCH = re.compile(r"\\([abdfilorsx])(?![a-z])", re.I)
_OPTION = re.compile(r"\s*\\(?:([lrb]c)\s*\\?(.)|[fv]c\s*\\?(.)|([a-z]{2})\s*(-?\d*))", re.I | re.S)
_OPENS = re.compile(r"\s*\(")
_ANY_SWITCH = re.compile(r"\\[a-z]+", re.I)
_DEEPEST = 60


def of_instruction(instruction: str) -> str | None:
    """What an `EQ` field shows; None for any other field."""
    found = _EQ.match(instruction)
    if found is None:
        return None
    text = _FORMAT.sub("", instruction[found.end() :])
    try:
        shown = _Reader(text).text("")
    except _TooDeep:
        shown = _ANY_SWITCH.sub(" ", text)
    return " ".join(shown.split())


class _TooDeep(Exception):
    """Switches lie in each other deeper than in any formula."""


class _Reader:
    """Reads an instruction from left to right."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0

    def text(self, ends: str) -> str:
        """What stands before the next of some signs, or before the end."""
        out: list[str] = []
        while self._at < len(self._source) and self._source[self._at] not in ends:
            switch = _SWITCH.match(self._source, self._at)
            sign = self._source[self._at]
            if switch is not None:
                self._at = switch.end()
                out.append(self._drawn(switch[1].lower()))
            elif sign == "\\":  # a sign that would mean something without it
                out.append(self._source[self._at + 1 : self._at + 2])
                self._at += 2
            else:
                self._at += 1
                out.append(sign)
                if sign == "(":
                    out.append(self._inner())
        return "".join(out)

    def _inner(self) -> str:
        """What stands in brackets that belong to the text."""
        text = self._deeper(")")
        if self._at < len(self._source):
            self._at += 1
            text += ")"
        return text

    def _deeper(self, ends: str) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooDeep
        text = self.text(ends)
        self._depth -= 1
        return text

    def _drawn(self, switch: str) -> str:
        options: dict[str, str] = {}
        while found := _OPTION.match(self._source, self._at):
            self._at = found.end()
            bracket, sign, symbol, name, number = found.groups()
            if symbol:
                options["symbol"] = symbol
            else:
                options[(bracket or name).lower()] = sign if bracket else number
        opens = _OPENS.match(self._source, self._at)
        if opens is None:
            return ""
        self._at = opens.end()
        parts = self._parts()
        if switch == "s":
            lower = "do" in options and "up" not in options
            whole = " ".join(parts)
            return scripts("", whole) if lower else scripts("", above=whole)
        return _DRAWN[switch](parts, options)

    def _parts(self) -> list[str]:
        """What stands in a switch's brackets, separated by commas or, where the comma is that of
        numbers, by semicolons.
        """
        parts: list[str] = []
        separators: list[str] = []
        while True:
            parts.append(self._deeper(",;)").strip())
            sign = self._source[self._at : self._at + 1]
            self._at += 1
            if sign not in (",", ";"):
                break
            separators.append(sign)
        if ";" not in separators:
            return parts
        joined = [parts[:1]]
        for sign, part in zip(separators, parts[1:], strict=True):
            if sign == ";":
                joined.append([])
            joined[-1].append(part)
        return [",".join(pieces) for pieces in joined]


def _bracketed(parts: list[str], options: dict[str, str]) -> str:
    both = options.get("bc")
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    opening = options.get("lc", both or ("" if "rc" in options else "("))
    closing = options.get("rc", pairs.get(both, both) if both else "" if "lc" in options else ")")
    return f"{opening}{', '.join(parts)}{closing}"


def _integral(parts: list[str], options: dict[str, str]) -> str:
    below, above, of = (*parts, "", "", "")[:3]
    sign = options.get("symbol") or ("∑" if "su" in options else "∏" if "pr" in options else "∫")
    return f"{scripts(sign, below, above)} {of}"


def _array(parts: list[str], options: dict[str, str]) -> str:
    columns = max(1, int((options.get("co") or "1")[:6]))
    return matrix([parts[at : at + columns] for at in range(0, len(parts), columns)])


def _over_each_other(parts: list[str], _: dict[str, str]) -> str:
    """A reading above its word is left out, as those of ruby are."""
    words = [part for part in parts if not part.startswith(("^", "_"))]
    return "".join(words or parts)


_DRAWN: dict[str, Callable[[list[str], dict[str, str]], str]] = {
    "a": _array,
    "b": _bracketed,
    "d": lambda _, __: " ",
    "f": lambda parts, _: fraction(parts[0], ", ".join(parts[1:])),
    "i": _integral,
    "l": lambda parts, _: ", ".join(parts),
    "o": _over_each_other,
    "r": lambda parts, _: root(parts[-1], parts[0] if len(parts) > 1 else ""),
    "x": lambda parts, _: ", ".join(parts),
}


@dataclass
class _Field:
    """A field that is open.

    Args:
        instruction: its pieces so far.
        has_result: whether the file has a text for it.
        is_read: whether its result, not its instruction, is being read.
    """

    instruction: list[str] = field(default_factory=list)
    has_result: bool = False
    is_read: bool = False


def write_out(part: Any) -> None:
    """Puts a run with the text of each `EQ` field behind it; changes the tree.

    Args:
        part: the root of a Word part.
    """
    opened: list[_Field] = []
    for element in list(part.iter("{*}fldChar", "{*}fldSimple", "{*}instrText", "{*}t")):
        tag = local_name(element)
        if tag == "fldSimple":
            if not "".join(element.itertext()).strip():
                _add(element, of_instruction(_attribute(element, "instr")))
        elif tag == "instrText" and opened:
            opened[-1].instruction.append(element.text or "")
        elif tag == "t" and opened:
            opened[-1].has_result |= opened[-1].is_read and bool((element.text or "").strip())
        elif tag == "fldChar":
            kind = _attribute(element, "fldCharType")
            if kind == "begin":
                opened.append(_Field())
            elif opened and kind == "separate":
                opened[-1].is_read = True
            elif opened and kind == "end":
                ended = opened.pop()
                if not ended.has_result:
                    _add(element.getparent(), of_instruction("".join(ended.instruction)))


def _add(behind: Any, text: str | None) -> None:
    from lxml import etree

    if not text or behind is None or behind.getparent() is None:
        return
    space = behind.tag.rpartition("}")[0].lstrip("{")
    run = etree.Element(f"{{{space}}}r")
    etree.SubElement(run, f"{{{space}}}t").text = text
    tail, behind.tail = behind.tail, None
    behind.addnext(run)
    run.tail = tail


def _attribute(element: Any, name: str) -> str:
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), "")
