"""What stands before a list's items, as browsers and Word count them."""

from __future__ import annotations

import re
from typing import Any

_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN = 3999
_STYLE = re.compile(r"list-style(?:-type)?\s{0,9}:\s{0,9}(lower|upper)-(alpha|latin|roman)\b", re.I)
_OF_STYLE = {"loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}


class Numbers:
    """The numbers of an ordered list's items.

    Args:
        ol: the list's element; it says how its items are counted.
    """

    def __init__(self, ol: Any) -> None:
        self._kind = _kind(ol)
        self._step = 1
        start = _number(ol.get("start"))
        if ol.get("reversed") is not None:
            self._step = -1
            start = sum(1 for child in ol if child.tag == "li") if start is None else start
        self._next = 1 if start is None else start

    def mark(self, li: Any) -> str:
        """The next item's mark."""
        stated = _number(li.get("value"))
        number = self._next if stated is None else stated
        self._next = number + self._step
        return f"{numeral(_kind(li) or self._kind, number)}."


def numeral(kind: str, number: int) -> str:
    """A number in letters (`a`, `A`), Roman (`i`, `I`) or digits (anything else)."""
    lower = kind.lower()
    if lower == "i" and 0 < number <= _MOST_ROMAN:
        text = ""
        for value, letters in _ROMAN:
            text += letters * (number // value)
            number %= value
    elif lower == "a" and number > 0:
        text = ""
        while number:
            number, letter = divmod(number - 1, 26)
            text = chr(ord("a") + letter) + text
    else:
        return str(number)
    return text if kind == lower else text.upper()


def _kind(element: Any) -> str:
    stated = (element.get("type") or "").strip()
    if stated in ("a", "A", "i", "I"):
        return stated
    style = _STYLE.search(element.get("style") or "")
    return _OF_STYLE[style[1].lower() + style[2].lower().replace("latin", "alpha")] if style else ""


def _number(value: str | None) -> int | None:
    """As browsers read it; None if it is none. At most nine digits."""
    found = re.match(r"\s{0,9}(-?[0-9]{1,9})", value or "")
    return int(found[1]) if found else None
