"""What stands on a PDF's pages beside their own text: fields that were filled in, typed notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.clean import tidied

_HIDDEN = 0b10_0010
"""Flags of an annotation that no viewer shows: hidden, or not to be viewed."""

_PASSWORD = 1 << 13
_MOST_ABOVE = 20
"""Fields within fields."""


class PageNotes:
    """Reads them page by page.

    Args:
        budget: of the document.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._attached = False

    def of(self, page: Any) -> str:
        """A line for each field with a value, `label: value`, and for each text typed on a page."""
        lines = []
        for note in _annotations(page, self._budget):
            try:
                line = tidied(self._line(note))
            except Exception:  # a damaged one loses no other, nor the page's own text
                continue
            if line:
                self._budget.spend(len(line))
                lines.append(line)
        return "\n".join(lines)

    def _line(self, note: Any) -> str:
        kind, flags = note.get("/Subtype"), note.get("/F", 0)
        self._attached = self._attached or kind == "/FileAttachment"
        if isinstance(flags, int) and flags & _HIDDEN:
            return ""
        if kind == "/Widget":
            return _field(note)
        return _text(note.get("/Contents")) if kind == "/FreeText" else ""

    def left_out(self, name: str, reader: Any) -> tuple[str, ...]:
        """What is in the file, but isn't read, after its pages were: files, and forms in XFA."""
        root = _got(reader.trailer, "/Root")
        found = []
        if self._attached or _got(_got(root, "/Names"), "/EmbeddedFiles") is not None:
            found.append(f"{name} has other files attached, which aren't read")
        if _got(_got(root, "/AcroForm"), "/XFA") is not None:
            found.append(
                f"{name} has a form in XFA; what only that holds isn't read, unless it is printed "
                "to a PDF"
            )
        return tuple(found)


def _annotations(page: Any, budget: Budget) -> Iterator[Any]:
    notes = _got(page, "/Annots")
    for entry in notes if isinstance(notes, list) else ():
        budget.check_time()
        try:
            note = entry.get_object()
        except Exception:  # a damaged one loses no other
            continue
        if isinstance(note, dict):
            yield note


def _field(widget: Any) -> str:
    """A field's line, "" if nothing was filled in."""
    kind, flags = _inherited(widget, "/FT"), _inherited(widget, "/Ff")
    value = _inherited(widget, "/V")
    if kind == "/Btn":
        state = widget.get("/AS")
        if not isinstance(state, str) or state == "/Off":
            return ""
        said = state.removeprefix("/")
    elif kind in ("/Tx", "/Ch"):
        if kind == "/Tx" and isinstance(flags, int) and flags & _PASSWORD:
            return ""
        said = ", ".join(map(_text, value)) if isinstance(value, list) else _text(value)
    else:
        return ""
    label = (
        _text(widget.get("/TU"))
        or _text(_inherited(widget, "/TU"))
        or _text(_inherited(widget, "/T"))
    )
    label = label.strip().rstrip(".:")
    return f"{label}: {said}" if label and said.strip() else said


def _inherited(widget: Any, key: str) -> Any:
    above, left = widget, _MOST_ABOVE
    while isinstance(above, dict) and left:
        if key in above:
            return _got(above, key)
        above, left = _got(above, "/Parent"), left - 1
    return None


def _got(found: Any, key: str) -> Any:
    """An entry of a dictionary, None if it is missing or damaged."""
    try:
        return found[key].get_object() if found is not None and key in found else None
    except Exception:  # whatever a damaged one brings the library to raise
        return None


def _text(value: Any) -> str:
    """A string of PDF's, also a long one that is a stream; "" for anything else."""
    if hasattr(value, "get_data"):
        value = value.get_data()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value) if isinstance(value, str) else ""
