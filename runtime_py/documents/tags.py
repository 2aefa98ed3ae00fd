"""What HTML's elements are to a reader of text."""

from __future__ import annotations

from typing import Any

from edgeinfinite.runtime_py.documents.formulas import local_name

UNREAD = frozenset(("script", "style", "noscript", "template", "nav", "head", "title")) | {
    *("rt", "rp", "rtc", "desc", "metadata"),
}
"""Nothing in them is read; of ruby the words stay, their readings would stand amid them."""

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LISTS = frozenset(("ul", "ol", "menu", "dir"))
VERBATIM = frozenset(("pre", "listing", "xmp", "plaintext"))
TABLE_PARTS = frozenset(("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption"))
BLOCKS = (
    HEADINGS
    | LISTS
    | VERBATIM
    | TABLE_PARTS
    | frozenset(("address", "article", "aside", "blockquote", "body", "center", "dd", "details"))
    | frozenset(("dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer"))
    | frozenset(("form", "frameset", "header", "hgroup", "hr", "html", "legend", "li", "main"))
    | frozenset(("noframes", "optgroup", "option", "p", "search", "section", "summary", "text"))
)
"""`text` is SVG's: a label of a drawing, or a line of a page that is drawn."""

APART = frozenset(("button", "select", "textarea", "input", "object", "canvas", "video", "audio"))
APART |= frozenset(("marquee",))
"""Inline elements that are boxes of their own, no part of the word before or after."""

LINES = frozenset(("option", "legend", "dt", "text"))
"""Blocks without a blank line around."""

MARKED = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em"), "*"),
    **dict.fromkeys(("s", "del", "strike"), "~~"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
}
RAISED = {"sup": "^", "sub": "_"}

_MATH_AROUND = 4


def around_math(root: Any) -> set[Any]:
    """The elements right around a formula, in which pages also draw it, hidden from readers."""
    found: set[Any] = set()
    for element in root.iter():
        if local_name(element) == "math":
            for outer, _ in zip(element.iterancestors(), range(_MATH_AROUND), strict=False):
                if local_name(outer) in BLOCKS:
                    break
                found.add(outer)
    return found


def is_other_choice(element: Any) -> bool:
    """Whether EPUB's `switch` has something in this one's place: a formula, else what all read."""
    parent = element.getparent()
    name = local_name(element).rpartition(":")[2]
    if name not in ("case", "default") or parent is None:
        return False
    if local_name(parent).rpartition(":")[2] != "switch":
        return False
    has_formula = any(local_name(one) == "math" for one in parent.iter())
    if name == "default":
        return has_formula
    return not any(local_name(one) == "math" for one in element.iter())


def is_tex(script: Any) -> bool:
    """Whether a script is a formula that no program has drawn yet."""
    if not (script.get("type") or "").lower().startswith("math/tex"):
        return False
    before = script.getprevious()
    return before is None or "mathjax" not in (before.get("class") or "").lower()


def blocks_inside(root: Any) -> set[Any]:
    """The inline elements with blocks in them, which are written as if they weren't there."""
    found: set[Any] = set()
    for element in root.iter():
        if local_name(element) not in BLOCKS:
            continue
        parent = element.getparent()
        while parent is not None and parent not in found and local_name(parent) not in BLOCKS:
            found.add(parent)
            parent = parent.getparent()
    return found


def layout_tables(root: Any) -> set[Any]:
    """The tables that only lay a page out: they hold tables or headings, or say so."""
    found: set[Any] = set()
    for element in root.iter():
        tag = local_name(element)
        if tag == "table" and element.get("role") in ("presentation", "none"):
            found.add(element)
        elif tag == "table" or tag in HEADINGS:
            for outer in element.iterancestors():
                if local_name(outer) == "table":
                    if outer in found:
                        break
                    found.add(outer)
    return found
