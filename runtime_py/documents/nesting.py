"""Pages nested deeper than a parser goes: what is deeper loses its tags, and keeps its text."""

from __future__ import annotations

import re
from collections import Counter

from edgeinfinite.runtime_py.documents.tags import BLOCKS, UNREAD

_DEEPEST = 200
_MOST = 50_000
"""Levels that some damaged page may have; what has more is made to break readers."""

_TAG = re.compile(r"<!--|<(/?)([a-zA-Z][\w:.-]{0,99})((?:\"[^\"]*\"|'[^']*'|[^<>\"'])*)>")
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"))
_VOID |= frozenset(("param", "source", "track", "wbr"))
_AS_TEXT = frozenset(("script", "style", "textarea", "title", "xmp", "plaintext", "noscript"))
_BREAK = "<br>"


def flattened(page: str) -> str:
    """A page whose tags beyond a depth are gone; line breaks stand where those of blocks were.

    What isn't read anywhere, such as scripts, stays marked as that.

    Raises:
        RecursionError: there are more levels than any page has.
    """
    flat = _Flat()
    end = 0
    while found := _TAG.search(page, end):
        flat.write(page[end : found.start()])
        end = found.end()
        name = (found[2] or "").lower()
        if not name:
            stop = page.find("-->", end)
            end = len(page) if stop < 0 else stop + 3
        elif name in _VOID or found[0].endswith("/>"):
            flat.write(found[0])
        elif found[1]:
            flat.end(name)
        elif name in _AS_TEXT:
            close = re.compile(f"</{name}", re.I).search(page, end)
            stop = close.start() if close else len(page)
            flat.write(f"{found[0]}{page[end:stop]}</{name}>")
            end = (page.find(">", stop) + 1 if close else 0) or len(page)
        else:
            flat.start(name, found[0])
    flat.write(page[end:])
    return flat.text()


class _Flat:
    """The page that is written, and the elements that are open in it."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._counts: Counter[str] = Counter()
        self._is_broken = False

    def text(self) -> str:
        return "".join(self._out)

    def write(self, piece: str) -> None:
        if piece:
            self._out.append(piece)
            self._is_broken = self._is_broken and piece.isspace()

    def start(self, name: str, tag: str) -> None:
        if len(self._open) >= _MOST:
            raise RecursionError("it is nested too deeply")
        is_kept = len(self._open) < _DEEPEST or name in UNREAD
        self._open.append((name, is_kept))
        self._counts[name] += 1
        self._written(name, tag if is_kept else "")

    def end(self, name: str) -> None:
        """Ends an element, and with it those that it ends by the way."""
        if not self._counts[name]:
            return
        ended = ""
        while ended != name:
            ended, is_kept = self._open.pop()
            self._counts[ended] -= 1
            self._written(ended, f"</{ended}>" if is_kept else "")

    def _written(self, name: str, tag: str) -> None:
        if tag:
            self.write(tag)
        elif name in BLOCKS and not self._is_broken:
            self.write(_BREAK)
            self._is_broken = True
