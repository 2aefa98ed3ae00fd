"""What a page's styles do to its text: raise, lower, break or hide a piece of a line.

Publishers' programs write classes where others write `<sup>`. Only what changes words is read, from
rules that name one class or an element of one class: `.a`, `span.a`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

BLOCK, CELL, NONE, SUB, SUPER = "block", "cell", "none", "sub", "super"
"""What a piece of a line is: lines of its own, a cell, hidden, lowered or raised."""

_LONGEST = 1 << 20
"""Characters of a page's rules that are read."""

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.S)
_RULE = re.compile(r"([^{};@]{1,2000})\{([^{}]{0,4000})\}")
_SELECTOR = re.compile(r"[a-zA-Z]{0,20}\.([\w-]{1,100})")
_ALIGN = re.compile(
    r"(?<![\w-])vertical-align\s{0,9}:\s{0,9}"
    r"(?:(super|text-top)|(sub|text-bottom)|(-?)(\d{0,4}(?:\.\d{1,6})?)(em|ex|%|pt|px))(?![\w%])",
    re.I,
)
_DISPLAY = re.compile(r"(?<![\w-])display\s{0,9}:\s{0,9}([a-z-]{1,20})", re.I)
_LEAST = {"em": 0.15, "ex": 0.3, "%": 15, "pt": 2, "px": 2}
"""By which a piece is raised; less sets a line straight."""

_BLOCKS = ("block", "flex", "flow-root", "grid", "list-item", "table", "table-caption", "table-row")
_HIDDEN = ("none", "table-column", "table-column-group")


def effect(declarations: str) -> str | None:
    """What an element's declarations do to it; None for nothing."""
    display = _DISPLAY.search(declarations)
    shown = display[1].lower() if display else ""
    if shown in _HIDDEN:
        return NONE
    found = _ALIGN.search(declarations)
    if found is not None:
        if found[1] or found[2]:
            return SUPER if found[1] else SUB
        by = float(found[4]) if found[4] not in ("", ".") else 0.0
        if by >= _LEAST[found[5].lower()]:
            return SUB if found[3] else SUPER
    if shown in _BLOCKS:
        return BLOCK
    return CELL if shown == "table-cell" else None


def effects(rules: Iterable[str]) -> dict[str, str]:
    """What classes do, by their names; of two rules for one the later holds.

    Args:
        rules: texts of style sheets.
    """
    found: dict[str, str] = {}
    left = _LONGEST
    for text in rules:
        text = _COMMENT.sub("", text[:left])
        left -= len(text)
        for selectors, declarations in _RULE.findall(text):
            what = effect(declarations)
            if what in (None, NONE):  # a class that hides is often one that a script shows
                continue
            for selector in selectors.split(","):
                if named := _SELECTOR.fullmatch(selector.strip()):
                    found[named[1]] = what
    return found


def of_element(element: Any, classes: dict[str, str]) -> str | None:
    """What an element's own style or its classes do to it; None for nothing."""
    own = element.get("style")
    if own and (what := effect(own)) is not None:
        return what
    if element.get("hidden") not in (None, "until-found"):
        return NONE
    if classes:
        for name in (element.get("class") or "").split():
            if name in classes:
                return classes[name]
    return None
