"""A tree of HTML as Markdown, in one pass from its beginning to its end.

Time and text are linear in the page: nothing is copied once for each level of nesting but in a few
inline elements, and every character that comes out is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from edgeinfinite.runtime_py.documents import inline, styles, tags
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.formulas import local_name, of_mathml
from edgeinfinite.runtime_py.documents.lines import Lines
from edgeinfinite.runtime_py.documents.list_marks import Numbers
from edgeinfinite.runtime_py.documents.tables import Cell, Table, span

ITEM_MARK = "edgeinfinite-mark"
"""An attribute of `li`: what stands before it, where that isn't counted."""

_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_CAPTURES = 16
"""Elements within each other that are held back; what is deeper is written as it stands."""


def markdown(root: Any, budget: Budget, classes: dict[str, str] | None = None) -> str:
    """The Markdown of an element of lxml and all in it.

    Args:
        root: the element.
        budget: counts what is written.
        classes: what its style sheets' classes do (`styles.effects`).

    Raises:
        TooMuch: the text is too long.
    """
    return _Writer(root, budget, classes or {}).written()


class _Writer:
    def __init__(self, root: Any, budget: Budget, classes: dict[str, str]) -> None:
        self._root = root
        self._classes = classes
        self._lines = Lines(budget)
        self._captures: list[list[str]] = []
        self._ends: dict[Any, Callable[[], None]] = {}
        self._lists: list[Numbers | None] = []
        self._tables: list[Table] = []
        self._verbatim = 0
        self._blocks_inside, self._layout = tags.blocks_inside(root), tags.layout_tables(root)
        self._around_math = tags.around_math(root)

    def written(self) -> str:
        from lxml import etree

        walk = etree.iterwalk(self._root, events=("start", "end", "comment", "pi"))
        for event, element in walk:
            if event == "start":
                if self._starts(element):
                    self._text(element.text)
                else:
                    walk.skip_subtree()
            else:
                if event == "end":
                    self._ended(element)
                elif (element.text or "").startswith("[CDATA["):  # XML's, in a page read as HTML
                    self._text(element.text[7:].removesuffix("]]"))
                if element is not self._root:
                    self._text(element.tail)
        return self._lines.text()

    # ------------------------------------------------------------------------------ text

    def _text(self, text: str | None) -> None:
        if not text:
            return
        if not self._verbatim:
            text = _SPACE.sub(" ", text)
        self._put(text)

    def _put(self, text: str) -> None:
        if self._captures:
            self._captures[-1].append(text)
        else:
            self._lines.write(text)

    def _break(self, lines: int) -> None:
        if not self._captures:
            self._lines.break_(lines)
        elif not self._verbatim:
            self._captures[-1].append(" ")
        elif not next(filter(None, reversed(self._captures[-1])), "\n").endswith("\n"):
            self._captures[-1].append("\n")

    def _capture(self, element: Any, then: Callable[[str], None]) -> None:
        """Holds what an element says back until its end, for `then`."""
        if len(self._captures) < _MOST_CAPTURES:
            self._captures.append([])
            self._ends[element] = lambda: then("".join(self._captures.pop()))

    # -------------------------------------------------------------------------- elements

    def _starts(self, element: Any) -> bool:
        """Begins an element; False if nothing in it is read."""
        tag = local_name(element)
        if tag in tags.UNREAD:
            if tag == "script" and tags.is_tex(element):
                self._put(f" {' '.join((element.text or '').split())} ")
            return False
        if element.get("aria-hidden") == "true" and element.getparent() in self._around_math:
            return False
        if inline.is_page_mark(element) or tags.is_other_choice(element):
            if tag in tags.BLOCKS:
                self._break(2)
            return False
        if tag == "math":
            self._put(
                f" {of_mathml(element)} "
                if element.get("display") == "block"
                else of_mathml(element)
            )
            return False
        if tag in tags.BLOCKS:
            self._block_starts(tag, element)
        elif tag == "input":
            self._put(inline.field(element))
        elif tag in tags.APART:
            self._put(" ")
        elif tag == "img":
            self._put(inline.picture(element))
        elif tag == "br":
            self._put("\n") if self._verbatim or not self._captures else self._put(" ")
        else:
            return self._inline_starts(tag, element)
        return True

    def _inline_starts(self, tag: str, element: Any) -> bool:
        """As `_starts`, of what stands within a line."""
        styled = styles.of_element(element, self._classes)
        if styled == styles.NONE and not self._holds_more(element):
            return False
        if styled in (styles.BLOCK, styles.CELL):
            separate = (
                (lambda: self._break(2)) if styled == styles.BLOCK else (lambda: self._put(" "))
            )
            separate()
            self._ends[element] = separate
            return True
        if styled in (styles.SUPER, styles.SUB) and not (tag == "a" and inline.is_note(element)):
            tag = "sup" if styled == styles.SUPER else "sub"
        self._marked_starts(tag, element)
        return True

    def _holds_more(self, element: Any) -> bool:
        """Whether it holds blocks, which a page may show later, or a formula, which it draws."""
        return element in self._blocks_inside or element in self._around_math

    def _marked_starts(self, tag: str, element: Any) -> None:
        if tag == "tspan" and inline.is_line(element):
            self._break(1)
        if self._verbatim or element in self._blocks_inside:
            return
        if tag in tags.RAISED:
            self._capture(
                element, lambda text: self._put(inline.raised(tags.RAISED[tag], text, element))
            )
        elif tag in tags.MARKED:
            self._capture(element, lambda text: self._put(inline.between(tags.MARKED[tag], text)))
        elif tag == "q":
            self._capture(element, lambda text: self._put(f'"{text}"'))
        elif tag == "a":
            if inline.is_note(element):
                self._capture(element, lambda text: self._put(inline.bracketed(text)))
            elif href := inline.target(element):
                self._capture(element, lambda text: self._put(inline.link(text, href)))

    def _block_starts(self, tag: str, element: Any) -> None:
        if tag in tags.HEADINGS:
            self._break(2)
            if not self._captures:
                self._capture(element, lambda text: self._heading(int(tag[1]), text))
        elif tag in tags.VERBATIM and not self._captures:
            self._verbatim += 1
            self._capture(element, self._verbatim_ends)
        elif tag == "li":
            self._item_starts(element)
        elif tag in tags.LISTS:
            self._break(1 if self._lists else 2)
            self._lists.append(Numbers(element) if tag == "ol" else None)
        elif tag == "blockquote" and not self._captures:
            self._break(2)
            self._lines.push("> ", "")
        elif tag == "dd" and not self._captures:
            self._break(1)
            self._lines.push("    ", ":   ")
        elif tag == "table" and element not in self._layout and not self._captures:
            self._break(2)
            self._tables.append(Table())
        elif tag == "tr" and self._tables and not self._captures:
            self._tables[-1].rows.append([])
        elif tag in ("td", "th") and self._tables and not self._captures:
            self._capture(element, lambda text: self._cell(element, text))
        elif tag == "hr":
            self._break(2)
            self._put("---")
        elif tag not in ("tbody", "thead", "tfoot"):
            self._break(1 if tag in tags.LINES else 2)

    def _ended(self, element: Any) -> None:
        tag = local_name(element)
        if tag in tags.LISTS and self._lists:
            self._lists.pop()
        if (end := self._ends.pop(element, None)) is not None:
            end()
        elif self._captures or tag not in tags.BLOCKS:
            if tag in tags.BLOCKS:
                self._break(2)
            elif tag in tags.APART:
                self._put(" ")
        elif tag == "li":
            is_empty = self._lines.has_mark
            self._lines.pop()
            self._lines.break_(1, exactly=not is_empty)
        elif tag in tags.LISTS:
            self._break(1 if self._lists else 2)
        elif tag in ("blockquote", "dd"):
            self._lines.pop()
            self._break(1 if tag == "dd" else 2)
        elif tag == "table" and element not in self._layout and self._tables:
            for line in self._tables.pop().lines():
                self._lines.break_(1)
                self._lines.write(line)
            self._break(2)
        elif tag == "dt":
            self._lines.break_(1, exactly=True)
        elif tag == "text":
            self._break(1)
        elif tag not in ("tbody", "thead", "tfoot", "tr"):
            self._break(2)

    def _item_starts(self, element: Any) -> None:
        numbers = self._lists[-1] if self._lists else None
        mark = element.get(ITEM_MARK) or (numbers.mark(element) if numbers is not None else "")
        self._break(1)
        if not self._captures:
            self._lines.push(" " * (len(mark) + 1) if mark else "  ", f"{mark or '-'} ")
        elif mark:
            self._put(f"{mark} ")

    def _heading(self, level: int, text: str) -> None:
        if words := " ".join(text.split()):
            self._lines.break_(2)
            self._lines.write(f"{'#' * level} {words}")
        self._lines.break_(2)

    def _verbatim_ends(self, text: str) -> None:
        self._verbatim -= 1
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            lines.pop()
        self._lines.break_(2)
        if lines:
            self._lines.write("\n".join(["```", *lines, "```"]))
        self._lines.break_(2)

    def _cell(self, element: Any, text: str) -> None:
        table = self._tables[-1]
        if not table.rows:
            table.rows.append([])
        cell = Cell(
            " ".join(text.split()), span(element.get("colspan")), span(element.get("rowspan"))
        )
        table.rows[-1].append(cell)
