"""The numbers that Word shows before paragraphs: nothing of them stands in the text.

They are counted over the whole document, across what stands between, and written before mammoth
reads it: it knows only that a paragraph is in a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from edgeinfinite.runtime_py.documents.formulas import local_name
from edgeinfinite.runtime_py.documents.list_marks import numeral
from edgeinfinite.runtime_py.documents.writer import ITEM_MARK

_START, _END = "\ue000", "\ue001"
"""Around a number on its way through mammoth."""

_KINDS = {
    **{"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"},
    "decimalZero": "01",
}
_MARKED = re.compile(f'<(li|h[1-6]|p)>((?:<a id="[^"<>]*"></a>)*){_START}([^{_END}<>]*){_END}')
_LEVEL = re.compile(r"%([1-9])")
_PLAIN = re.compile(r"(\d{1,9})\.")
_LONGEST = 40
_MOST_LEVELS = 9
"""Of a list, as Word has them."""

_MOST_ABOVE = 20
"""Styles that are based on each other."""


def number(document: Any, numbering: Any, styles: Any) -> None:
    """Writes each paragraph's number before its text, in marks that `shown` reads.

    Args:
        document: the root of the main part, made plain (`word_parts.make_plain`), which is changed.
        numbering: the root of the part of that name; None if it is missing.
        styles: the same.
    """
    if numbering is None:
        return
    from lxml import etree

    lists = _Lists(numbering, styles)
    joined: Any = None
    for paragraph in list(document.iter("{*}p")):
        if next(paragraph.iterancestors("{*}Choice"), None) is not None:
            continue  # mammoth reads the fallback
        if _is_joined(paragraph):
            joined = paragraph if joined is None else joined
            continue
        label, first = lists.label(paragraph), paragraph if joined is None else joined
        joined = None
        if label is None:
            continue
        space = paragraph.tag.rpartition("}")[0] + "}"
        run = etree.Element(f"{space}r")
        text = etree.SubElement(run, f"{space}t")
        text.text = f"{_START}{label}{_END}"
        at = 1 if len(first) and local_name(first[0]) == "pPr" else 0
        first.insert(at, run)


def shown(page: str) -> str:
    """mammoth's page with the numbers that `number` wrote: of items, or before the text."""
    return _MARKED.sub(_shown, page)


def _shown(found: re.Match[str]) -> str:
    tag, anchors, label = found.groups()
    if tag != "li":
        return f"<{tag}>{anchors}{label} " if label else f"<{tag}>{anchors}"
    if plain := _PLAIN.fullmatch(label):
        return f'<li value="{plain[1]}">{anchors}'
    mark = label.replace('"', "'")
    return f'<li {ITEM_MARK}="{mark or "-"}">{anchors}'


def _is_joined(paragraph: Any) -> bool:
    """Whether a paragraph goes on in the next, since its end was deleted."""
    properties = next(_children(paragraph, "pPr"), ())
    return any(
        next(_children(of_end, "del"), None) is not None for of_end in _children(properties, "rPr")
    )


class _Lists:
    """The counters of a document's lists."""

    def __init__(self, numbering: Any, styles: Any) -> None:
        self._abstract: dict[str, dict[int, Any]] = {}
        self._known: dict[str, tuple[str, dict[int, Any], dict[int, int]]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._restarted: set[tuple[str, int]] = set()
        self._nums: dict[str, Any] = {}
        for one in numbering:
            tag, key = local_name(one), _value(one, "numId")
            if tag == "abstractNum":
                self._abstract[_value(one, "abstractNumId") or ""] = _levels(one)
            elif tag == "num" and key is not None:
                self._nums[key] = one
        self._styles = {} if styles is None else {_value(one, "styleId"): one for one in styles}

    def label(self, paragraph: Any) -> str | None:
        """What Word shows before a paragraph of a list; None for a bullet and outside of lists."""
        found = self._place(paragraph)
        if found is None:
            return None
        key, level = found
        name, levels, starts = self._list(key)
        if level not in levels:
            return None
        counts = self._counts.setdefault(name, {})
        if level in starts and (key, level) not in self._restarted:
            self._restarted.add((key, level))
            counts[level] = starts[level]
        else:
            counts[level] = counts[level] + 1 if level in counts else _start(levels[level])
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        return None if _format(levels[level]) == "bullet" else _written(levels, level, counts)

    def _list(self, key: str) -> tuple[str, dict[int, Any], dict[int, int]]:
        """A list's counter, levels and the numbers that it starts again with."""
        if key not in self._known:
            num = self._nums.get(key, ())
            name = _value(next(_children(num, "abstractNumId"), None)) or ""
            levels = dict(self._abstract.get(name, {}))
            starts: dict[int, int] = {}
            for override in _children(num, "lvlOverride"):
                at = _whole(_value(override, "ilvl"), 0)
                levels |= _levels(override, at)
                for start in _children(override, "startOverride"):
                    starts[at] = _whole(_value(start), 1)
            self._known[key] = (name, levels, starts)
        return self._known[key]

    def _place(self, paragraph: Any) -> tuple[str, int] | None:
        """The list and level of a paragraph, by itself or by its style."""
        properties = next(_children(paragraph, "pPr"), None)
        if properties is None:
            return None
        style = _value(next(_children(properties, "pStyle"), None))
        key, level = _numbered(properties)
        left = _MOST_ABOVE
        while style is not None and left and (key is None or level is None):
            of_style = self._styles.get(style)
            if of_style is None:
                break
            inner = next(_children(of_style, "pPr"), None)
            own = (None, None) if inner is None else _numbered(inner)
            if key is None and own[0] is not None:
                key = own[0]
                level = self._level_of(key, style) if level is None else level
            level = own[1] if level is None else level
            style = _value(next(_children(of_style, "basedOn"), None))
            left -= 1
        return None if key in (None, "0") else (str(key), level or 0)

    def _level_of(self, key: str, style: str) -> int | None:
        """The level that a list gives to a style."""
        for at, level in self._list(key)[1].items():
            if _value(next(_children(level, "pStyle"), None)) == style:
                return at
        return None


def _levels(parent: Any, of: int | None = None) -> dict[int, Any]:
    """The levels that an element has, or the one that it is for."""
    found = ((_whole(_value(one, "ilvl"), of or 0), one) for one in _children(parent, "lvl"))
    return {at: one for at, one in found if at < _MOST_LEVELS and of in (None, at)}


def _written(levels: dict[int, Any], level: int, counts: dict[int, int]) -> str:
    """A label by the level's own pattern, such as `%1.%2`."""
    if _format(levels[level]) == "none":
        return ""
    is_legal = next(_children(levels[level], "isLgl"), None) is not None
    pattern = _value(next(_children(levels[level], "lvlText"), None)) or ""

    def one(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        count = counts.get(at, _start(levels[at]) if at in levels else 1)
        kind = "1" if is_legal or at not in levels else _kind(levels[at])
        return f"{count:02}" if kind == "01" else numeral(kind or "1", count)

    return " ".join(_LEVEL.sub(one, pattern).split())[:_LONGEST]


def _format(level: Any) -> str:
    return _value(next(_children(level, "numFmt"), None)) or "decimal"


def _kind(level: Any) -> str:
    return _KINDS.get(_format(level), "1")


def _start(level: Any) -> int:
    return _whole(_value(next(_children(level, "start"), None)), 1)


def _numbered(properties: Any) -> tuple[str | None, int | None]:
    found = next(_children(properties, "numPr"), None)
    if found is None:
        return None, None
    level = _value(next(_children(found, "ilvl"), None))
    key = _value(next(_children(found, "numId"), None))
    return key, None if level is None else _whole(level, 0)


def _children(element: Any, tag: str) -> Iterator[Any]:
    return (one for one in element if local_name(one) == tag)


def _value(element: Any, name: str = "val") -> str | None:
    """An attribute in whichever of Word's namespaces."""
    if element is None:
        return None
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), None)


def _whole(value: str | None, default: int) -> int:
    digits = (value or "")[:9]
    return int(digits) if digits.isascii() and digits.isdigit() else default
