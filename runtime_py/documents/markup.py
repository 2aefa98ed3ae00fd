"""HTML and XHTML to text: headings, lists, tables and links as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from edgeinfinite.runtime_py.documents import styles
from edgeinfinite.runtime_py.documents.archive import check_whole
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.clean import tidied
from edgeinfinite.runtime_py.documents.encoding import decoded, stated_encoding
from edgeinfinite.runtime_py.documents.formulas import local_name
from edgeinfinite.runtime_py.documents.inert import without_inert
from edgeinfinite.runtime_py.documents.nesting import flattened
from edgeinfinite.runtime_py.documents.parts import Extracted, one_line, reading
from edgeinfinite.runtime_py.documents.writer import markdown

_ENDS = re.compile(rb"</(?:body|html)\s{0,9}>", re.I)
"""Browsers read on after them; the library doesn't."""

_DOCTYPE = re.compile(r"<!DOCTYPE\b", re.I)
_SUBSET = re.compile(r"[^<>\[]{0,1000}\[([^\]]{0,100000})\]\s{0,99}>")
_ENTITY = re.compile(
    r"<!ENTITY\s{1,9}([\w.-]{1,99})\s{1,9}(?:\"([^\"&%<]{0,99})\"|'([^'&%<]{0,99})')"
)
_MOST_EXPANDED = 10_000_000
"""Characters that a page's own entities make of it, at most."""

_XHTML = re.compile(r"\s*(<\?xml|<!DOCTYPE[^<>]*XHTML|<html[^<>]*xmlns)", re.I)


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`."""
    with reading(name, "HTML"):
        return extracted(name, data, budget)


Sheet = Callable[[str], str]
"""The text of a style sheet by its address, "" if it can't be had."""


def extracted(name: str, data: bytes, budget: Budget, sheet: Sheet | None = None) -> Extracted:
    """The text and the title of a page.

    Args:
        name: the page's, for notes.
        data: its bytes; its own statement on their encoding counts.
        budget: of the document that the page belongs to.
        sheet: reads the style sheets that the page names; None reads none of them.

    Raises:
        Exception: of the libraries, see `parts.reading`.
    """
    text = decoded(name, data, stated_encoding(data))
    page, is_cut = _of_text(text.text, budget, sheet)
    deep = f"{name} is nested deeper than layouts go; of what is deeper only the text is read"
    return Extracted(page.text, page.title, (*text.notes, *([deep] if is_cut else ())))


def of_text(page: str, budget: Budget) -> Extracted:
    """As `extracted`, of a page that is decoded."""
    return _of_text(page, budget, None)[0]


def _of_text(page: str, budget: Budget, sheet: Sheet | None) -> tuple[Extracted, bool]:
    """The page, and whether it was nested too deeply."""
    try:
        root, is_cut = _parsed(page), False
    except RecursionError:
        root, is_cut = _parsed(flattened(page)), True
    if root is None:
        return Extracted(""), is_cut
    title = next((e for e in root.iter() if local_name(e) == "title" and not _is_drawn(e)), None)
    named = "" if title is None else one_line("".join(title.itertext()))
    classes = styles.effects(_rules(root, sheet))
    return Extracted(tidied(markdown(root, budget, classes)), named), is_cut


def _rules(root: Any, sheet: Sheet | None) -> Iterator[str]:
    """The page's style sheets in their order."""
    for element in root.iter():
        tag = local_name(element)
        if tag == "style":
            yield "".join(element.itertext())
        is_link = tag == "link" and "stylesheet" in (element.get("rel") or "").lower().split()
        if is_link and sheet is not None:
            yield sheet(element.get("href") or "")


def _is_drawn(title: Any) -> bool:
    """Whether it names a drawing, not the page."""
    parent = title.getparent()
    return parent is not None and local_name(parent) not in ("head", "html", "body")


def _parsed(page: str) -> Any:
    """The page's root, None if it is empty.

    Raises:
        MemoryError: there is too little for it.
        RecursionError: what is nested too deeply would be missing.
    """
    from lxml import etree

    data = page.encode("utf-8", "replace")
    if _XHTML.match(page[:1000]):
        # An entity of a page's own is text, but reaches no file and doesn't explode.
        strict = etree.XMLParser(
            encoding="utf-8", resolve_entities="internal", no_network=True, load_dtd=False
        )
        try:
            return etree.fromstring(data, strict)
        except etree.XMLSyntaxError:
            pass
    data = _ENDS.sub(b"", without_inert(_expanded(page)).encode("utf-8", "replace"))
    lenient = etree.HTMLParser(encoding="utf-8", huge_tree=True, recover=True)
    try:
        root = etree.fromstring(data, lenient)
    except etree.XMLSyntaxError:  # nothing but white space or comments
        root = None
    check_whole(lenient)
    for inner in [] if root is None else list(root.iter("dd")):
        if inner.getparent().tag == "dd":  # the library ends none where the next one begins
            inner.getparent().addnext(inner)
    return root


def _expanded(page: str) -> str:
    """A page without the declarations before it, and with what they say that its entities mean."""
    start = _DOCTYPE.search(page, 0, 200_000)
    found = start and _SUBSET.match(page, start.end())
    if not start or not found:
        return page
    page = page[: start.start()] + page[found.end() :]
    for name, *values in _ENTITY.findall(found[1])[:100]:
        value, entity = "".join(values), f"&{name};"
        if page.count(entity) * len(value) <= _MOST_EXPANDED:
            page = page.replace(entity, value)
    return page
