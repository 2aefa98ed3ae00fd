"""What Word's styles say that a reader of text needs: raised, hidden, a heading, a font of symbols.

mammoth knows what stands at a run itself. So what its style says is written there, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from edgeinfinite.runtime_py.documents.formulas import local_name

_RAISED = 6
"""Half points by which a run stands higher or lower; less sets a line straight."""

_HEADING = re.compile(r"heading ([1-6])", re.I)
_MOST_ABOVE = 20
"""Styles that a style is based on."""

_SYMBOLS = ("Symbol", "Webdings", "Wingdings", "Wingdings 2", "Wingdings 3")
_PRIVATE = 0xF000
"""Where such a font's signs stand in text."""


class Styles:
    """A document's styles.

    Args:
        root: of the part; None if there is none.
    """

    def __init__(self, root: Any) -> None:
        found = [] if root is None else [one for one in root if local_name(one) == "style"]
        self._styles = {_value(one, "styleId"): one for one in found}

    def write_into(self, root: Any) -> None:
        """Writes into runs what their styles say; changes signs of fonts of symbols to Unicode's.

        Args:
            root: of a part with text.
        """
        for run in root.iter("{*}r"):
            own = _child(run, "rPr")
            named = _value(_child(own, "rStyle")) if own is not None else None
            chain = [own, *self._of_runs(named)] if named else [own]
            if own is not None:
                self._write(run, own, chain)

    def heading(self, style: Any) -> int | None:
        """The level that a paragraph's style makes it a heading of: by its name or its bases'."""
        for one in self._chain(_value(style, "styleId")):
            name = _HEADING.fullmatch(_value(_child(one, "name")) or "")
            if name:
                return int(name[1])
        return None

    def _chain(self, style: str | None) -> Iterator[Any]:
        for _ in range(_MOST_ABOVE):
            one = self._styles.get(style)
            if one is None:
                return
            yield one
            style = _value(_child(one, "basedOn"))

    def _of_runs(self, style: str | None) -> Iterator[Any]:
        for one in self._chain(style):
            properties = _child(one, "rPr")
            if properties is not None:
                yield properties

    def _write(self, run: Any, own: Any, chain: list[Any]) -> None:
        font = _first(chain, "rFonts", "ascii") or _first(chain, "rFonts", "hAnsi")
        if font in _SYMBOLS:
            _translate(run, str(font))
        if _child(own, "vanish") is None and (hidden := _found(chain[1:], "vanish")) is not None:
            _add(own, "vanish", _value(hidden))
        if _child(own, "vertAlign") is None:
            align = _first(chain[1:], "vertAlign", "val")
            by = _first(chain, "position", "val") or ""
            if align is None and by.removeprefix("-").isdecimal() and abs(int(by[:6])) >= _RAISED:
                align = "subscript" if by.startswith("-") else "superscript"
            if align is not None:
                _add(own, "vertAlign", align)


def _translate(run: Any, font: str) -> None:
    from mammoth.docx.dingbats import dingbats

    for element in run:
        if local_name(element) == "t" and element.text:
            element.text = "".join(_sign(sign, font, dingbats) for sign in element.text)


def _sign(sign: str, font: str, dingbats: Any) -> str:
    code = ord(sign)
    found = dingbats.get((font, code - _PRIVATE if code >= _PRIVATE else code))
    return sign if found is None or code == 0x20 else chr(found)


def _add(properties: Any, name: str, value: str | None) -> None:
    from lxml import etree

    space = properties.tag.rpartition("}")[0].lstrip("{")
    one = etree.SubElement(properties, f"{{{space}}}{name}")
    if value is not None:
        one.set(f"{{{space}}}val", value)


def _found(chain: list[Any], name: str) -> Any:
    return next((one for part in chain if (one := _child(part, name)) is not None), None)


def _first(chain: list[Any], name: str, attribute: str) -> str | None:
    return _value(_found(chain, name), attribute)


def _child(element: Any, name: str) -> Any:
    if element is None:
        return None
    return next((one for one in element if local_name(one) == name), None)


def _value(element: Any, name: str = "val") -> str | None:
    """An attribute in whichever of Word's namespaces."""
    if element is None:
        return None
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), None)
