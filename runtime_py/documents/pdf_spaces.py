"""Spaces between the words of a PDF, where pypdf sees none or too many.

A PDF draws pieces of text at places. pypdf counts a gap only to the right, so that the columns of a
page that is printed line by line run into each other; and it takes what `Tw` adds to each space for
a gap.
"""

from __future__ import annotations

from typing import Any

_LEAST = 0.5
"""Of a font's size: how far back a piece has to be for another word."""

_NEEDED = ("_post_process_text_operation", "_handle_tj_operation")


def install() -> None:
    """Lets pypdf's reader of pages count both; without effect where it is built in another way."""
    from pypdf import _page

    found: Any = getattr(_page, "TextExtraction", None)
    if found is None or hasattr(found, "word_gaps") or not all(hasattr(found, n) for n in _NEEDED):
        return

    class Spaced(found):
        word_gaps = True

        def _post_process_text_operation(self, str_widths: float) -> None:
            before, x = (self.text, len(self.output)), self._x(self.cm_prev, self.tm_prev)
            super()._post_process_text_operation(str_widths)
            last = (self.text or self.output)[-1:]
            if (self.text, len(self.output)) != before or not last or last.isspace():
                return
            moved = self._x(self.cm_matrix, self.tm_matrix) - x
            if moved < -_LEAST * self.font_size * abs(self.tm_matrix[0] * self.cm_matrix[0]):
                self.text += " "

        def _handle_tj_operation(self, operands: list[Any]) -> float:
            width: float = super()._handle_tj_operation(operands)
            if operands and isinstance(operands[0], (str, bytes)) and self.space_scale != 1:
                space: Any = b" " if isinstance(operands[0], bytes) else " "
                wider = (self.space_scale - 1) * operands[0].count(space)
                self._actual_str_size["str_widths"] += 1000 * wider
            return width

        @staticmethod
        def _x(cm: list[float], tm: list[float]) -> float:
            return tm[4] * cm[0] + tm[5] * cm[2] + cm[4]

    _page.TextExtraction = Spaced
