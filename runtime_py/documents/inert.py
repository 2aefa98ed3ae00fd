"""What a page only holds in reserve: taken out before the library reads it.

Browsers end `<noscript>` and `<template>` at their end tags, whatever stands open inside. The
library doesn't: an unclosed element there would take the rest of the page with it.
"""

from __future__ import annotations

import re

_START = re.compile(
    r"<!--|<(script|style|textarea|title|xmp|iframe|noscript|template)(?=[\s/>])", re.I
)
_ENDS = {
    name: re.compile(rf"</{name}(?=[\s/>])[^>]*>?", re.I)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noscript")
}
_TEMPLATE = re.compile(r"<(/?)template(?=[\s/>])[^>]*>?", re.I)


def without_inert(page: str) -> str:
    """A page without its `noscript` and `template` elements.

    One that has no end loses its tag only, so that nothing of the page is lost. Time is linear.
    """
    out: list[str] = []
    end = 0
    unended: set[str] = set()
    while found := _START.search(page, end):
        out.append(page[end : found.start()])
        name = (found[1] or "").lower()
        stop = None if name in unended else _end(page, name, found.start())
        is_kept = name not in ("noscript", "template")
        if stop is None:
            unended.add(name)
            after = page.find(">", found.end())
            stop = len(page) if after < 0 else after + 1
        if is_kept:
            out.append(page[found.start() : stop])
        end = stop
    out.append(page[end:])
    return "".join(out)


def _end(page: str, name: str, start: int) -> int | None:
    """Where an element that starts at `start` ends; None if it doesn't. "" is a comment."""
    if not name:
        stop = page.find("-->", start)
        return len(page) if stop < 0 else stop + 3
    if name != "template":
        found = _ENDS[name].search(page, start)
        return None if found is None else found.end()
    depth = 0
    for tag in _TEMPLATE.finditer(page, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return None
