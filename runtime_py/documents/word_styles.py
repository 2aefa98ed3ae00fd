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


_Properties = dict[str, Any]
"""Elements by their names, of those in `_READ`."""

_READ = ("position", "rFonts", "rStyle", "vanish", "vertAlign")


class Styles:
    """A document's styles, each looked through once.

    Args:
        root: of the part; None if there is none.
    """

    def __init__(self, root: Any) -> None:
        self._names: dict[str | None, str] = {}
        self._bases: dict[str | None, str | None] = {}
        self._own: dict[str | None, _Properties] = {}
        self._whole: dict[str | None, _Properties] = {}
        for style in () if root is None else root:
            if local_name(style) == "style":
                self._add(style)

    def _add(self, style: Any) -> None:
        id_ = _value(style, "styleId")
        parts = _first_of(style, ("basedOn", "name", "rPr"))
        self._names[id_] = _value(parts.get("name")) or ""
        self._bases[id_] = _value(parts.get("basedOn"))
        self._own[id_] = _first_of(parts.get("rPr"), _READ)

    def write_into(self, root: Any) -> None:
        """Writes into runs what their styles say; changes signs of fonts of symbols to Unicode's.

        Args:
            root: of a part with text.
        """
        for run in root.iter("{*}r"):
            properties = next((one for one in run if local_name(one) == "rPr"), None)
            if properties is not None:
                own = _first_of(properties, _READ)
                self._write(run, properties, own, self._of(_value(own.get("rStyle"))))

    def heading(self, style: Any) -> int | None:
        """The level that a paragraph's style makes it a heading of: by its name or its bases'."""
        for id_ in self._chain(_value(style, "styleId")):
            if name := _HEADING.fullmatch(self._names[id_]):
                return int(name[1])
        return None

    def _chain(self, style: str | None) -> Iterator[str | None]:
        for _ in range(_MOST_ABOVE):
            if style not in self._names:
                return
            yield style
            style = self._bases[style]

    def _of(self, style: str | None) -> _Properties:
        """What a run's style says, or what that is based on."""
        if style not in self._whole:
            whole: _Properties = {}
            for id_ in self._chain(style):
                whole = self._own[id_] | whole
            self._whole[style] = whole
        return self._whole[style]

    def _write(self, run: Any, into: Any, own: _Properties, style: _Properties) -> None:
        both = style | own
        fonts = both.get("rFonts")
        font = _value(fonts, "ascii") or _value(fonts, "hAnsi")
        if font in _SYMBOLS:
            _translate(run, str(font))
        if "vanish" in style and "vanish" not in own:
            _add(into, "vanish", _value(style["vanish"]))
        if "vertAlign" not in own:
            align = _value(style.get("vertAlign"))
            by = _value(both.get("position")) or ""
            if align is None and by.removeprefix("-").isdecimal() and abs(int(by[:6])) >= _RAISED:
                align = "subscript" if by.startswith("-") else "superscript"
            if align is not None:
                _add(into, "vertAlign", align)


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


def _first_of(element: Any, names: tuple[str, ...]) -> _Properties:
    """The first child of each name that there is."""
    found: _Properties = {}
    for one in () if element is None else element:
        if (name := local_name(one)) in names:
            found.setdefault(name, one)
    return found


def _value(element: Any, name: str = "val") -> str | None:
    """An attribute in whichever of Word's namespaces."""
    if element is None:
        return None
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), None)
