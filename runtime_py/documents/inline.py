"""Inline elements as text."""

from __future__ import annotations

import re
from typing import Any

from edgeinfinite.runtime_py.documents.formulas import local_name

_SIMPLE = re.compile(r"[-+−–]?[\w.,′*]+[-+−–]?")
_EMPHASISED = re.compile(r"(\*{1,3})([^*]+)\1")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)", re.I)
_BRACKETED = re.compile(r"[\[(].*[\])]", re.S)
_FAR = re.compile(r"(?:https?://|mailto:)[^\s<>]+", re.I)
"""Addresses that still mean something in the text alone."""

_NOTE_MARK = re.compile(r"\s{0,9}(?:\d{1,4}|[*†‡§¶]{1,3})\s{0,9}")

_WHOLE = re.compile(r"\d{1,9}")
_SLASHES = ("/", "\u2044", "\u2215")
_PAGE_CLASSES = {"pagebreak", "page-break", "page-number", "pageno", "pagenum", "pagenumber"}
_LONGEST_PAGE = 20
_INITIAL = re.compile(r"[\"'“‘«„]?[^\W\d_]")

_TEXT_FIELDS = ("text", "search", "email", "tel", "url", "number", "date", "time", "month", "week")
_DECORATIVE = ("presentation", "none")
_FILE = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)", re.I)


def raised(mark: str, text: str, element: Any) -> str:
    """A superscript or subscript, so that it isn't read as a part of the number before it.

    Args:
        mark: `^` or `_`.
        text: in the element.
        element: it, for what stands before it and for links in it.
    """
    words = _EMPHASISED.sub(r"\2", " ".join(text.split()))
    if not words:
        return " " if text else ""
    if _BRACKETED.fullmatch(words) and mark == "^":
        return words
    before = _before(element)
    if mark == "^" and _ORDINAL.fullmatch(words) and before[-1:].isdigit():
        return words
    if mark == "^" and not words[0].isalnum() and len(words) == 1 and words not in "+-−–*′":
        return words  # a trade mark's sign, a degree's
    if any(
        local_name(child) == "a" and (child.get("href") or "#").startswith("#") for child in element
    ):
        return bracketed(words)
    if mark == "^" and _is_in_note(element):
        return bracketed(words)
    if _WHOLE.fullmatch(words):
        if mark == "^" and _is_numerator(element):
            return f" {words}" if before[-1:].isdigit() else words
        if mark == "_" and _is_denominator(element):
            return words
    return mark + (words if _SIMPLE.fullmatch(words) else f"({words})")


def _is_in_note(element: Any) -> bool:
    """Whether a raised number is what a link to a note shows."""
    outer = element.getparent()
    if outer is None or local_name(outer) != "a" or len(outer) > 1 or (outer.text or "").strip():
        return False
    return "#" in (outer.get("href") or "") and not target(outer)


def _is_numerator(element: Any) -> bool:
    """Whether a raised number is the upper half of a fraction: `<sup>1</sup>/<sub>2</sub>`."""
    after = element.getnext()
    return (element.tail or "").strip() in _SLASHES and _is_number(after, "sub")


def _is_denominator(element: Any) -> bool:
    before = element.getprevious()
    return before is not None and _is_number(before, "sup") and _is_numerator(before)


def _is_number(element: Any, tag: str) -> bool:
    return (
        element is not None
        and local_name(element) == tag
        and not len(element)
        and _WHOLE.fullmatch((element.text or "").strip()) is not None
    )


def is_page_mark(element: Any) -> bool:
    """Whether an element says where a printed page begins, which is no part of the text."""
    said = [
        value
        for name, value in element.attrib.items()
        if name.endswith(("type", "role")) and "page" in value
    ]
    classes = (element.get("class") or "").lower().split()
    if not {"pagebreak", "doc-pagebreak"} & set(" ".join(said).split()) and not (
        _PAGE_CLASSES & set(classes)
    ):
        return False
    return sum(map(len, element.itertext())) <= _LONGEST_PAGE


def is_note(element: Any) -> bool:
    """Whether a link is a footnote's mark: by what it says, or a number that ends a word."""
    kinds = {
        name: value for name, value in element.attrib.items() if name.endswith(("type", "role"))
    }
    said = " ".join(kinds.values()).split()
    classes = (element.get("class") or "").lower().split()
    if (
        "noteref" in said
        or "doc-noteref" in said
        or bool({"noteref", "footnote-ref"} & set(classes))
    ):
        return True
    if len(element) or "#" not in (element.get("href") or "") or target(element):
        return False
    return bool(_NOTE_MARK.fullmatch(element.text or "")) and _before(element)[-1:].isalnum()


def target(link: Any) -> str:
    """Where a link goes if that still means something in the text alone, else ""."""
    href = (link.get("href") or "").strip()
    if not _FAR.fullmatch(href):
        return ""
    return href.replace("(", "%28").replace(")", "%29")  # Markdown's own end of an address


def _before(element: Any) -> str:
    """The text right before an element."""
    previous = element.getprevious()
    return (element.getparent().text if previous is None else previous.tail) or ""


def bracketed(text: str) -> str:
    """The mark of a footnote, or what a picture shows."""
    words = " ".join(text.split())
    return words if not words or _BRACKETED.fullmatch(words) else f"[{words}]"


def between(mark: str, text: str) -> str:
    """Marked text; white space stays outside the marks."""
    words = text.strip()
    if not words:
        return text
    if mark == "`":
        while mark in words:
            mark += "`"
    before = text[: len(text) - len(text.lstrip())]
    return f"{before}{mark}{words}{mark}{text[len(text.rstrip()) :]}"


def link(text: str, href: str) -> str:
    """A link to another place than this document."""
    words = " ".join(text.split())
    if not words:
        return text
    before, after = " " * text[0].isspace(), " " * text[-1].isspace()
    plain = href.replace("%28", "(").replace("%29", ")")
    same = words in (href, plain, href.removeprefix("mailto:"))
    return f"{before}{words if same else f'[{words}]({href})'}{after}"


def picture(element: Any) -> str:
    """What stands in a picture's place: its alternative text, "" if that is none."""
    words = " ".join((element.get("alt") or "").split())
    is_hidden = element.get("aria-hidden") == "true" or element.get("role") in _DECORATIVE
    if not words or is_hidden or _FILE.fullmatch(words):
        return ""
    if _INITIAL.fullmatch(words) and (element.tail or "")[:1].isalpha():
        return words  # a drawn letter, with the rest of its word behind it
    parent = element.getparent()
    return words if parent is not None and local_name(parent) == "a" else bracketed(words)


def field(element: Any) -> str:
    """What an `input` shows: whether it is ticked, or the text in it."""
    kind = (element.get("type") or "text").strip().lower()
    if kind in ("checkbox", "radio"):
        return " [x] " if element.get("checked") is not None else " [ ] "
    return f" {element.get('value') or ''} " if kind in _TEXT_FIELDS else " "


def is_line(tspan: Any) -> bool:
    """Whether a piece of SVG's text begins elsewhere, as lines do."""
    has = tspan.attrib.keys()
    return "x" in has and ("y" in has or "dy" in has)
