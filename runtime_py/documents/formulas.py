"""Formulas as text on one line: MathML of pages, and Word's own markup."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_DEEPEST = 60
_PREFIXES = ("m", "mml", "math", "mathml", "h", "html", "xhtml", "svg")
"""Of namespaces, where a page in XML is read as HTML; Word's `o:p` is no paragraph."""

_COMPOSED = {
    *("mfrac", "msup", "msub", "msubsup", "mover", "munder", "munderover", "msqrt", "mroot"),
    *("mmultiscripts", "f", "sSup", "sSub", "sSubSup", "rad", "limLow", "limUpp"),
}
"""Elements that end where no sign does."""

_ATOM = re.compile(r"[-−]?[\w.]+|\(.*\)", re.S)
_TEX = ("application/x-tex", "TeX", "text/x-tex")
_UNREAD = ("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none")
_NAMED_FUNCTION = re.compile(r"[a-zA-Z]{2,}")


def local_name(element: Any) -> str:
    """An element's name without its namespace; "" for comments."""
    tag = element.tag
    return _without_space(tag) if isinstance(tag, str) else ""


@functools.lru_cache(4096)
def _without_space(tag: str) -> str:
    space, _, name = tag.rpartition("}")
    prefix, _, last = name.rpartition(":")
    return name if prefix and not space and prefix not in _PREFIXES else last


def of_mathml(math: Any) -> str:
    """A `math` element's text: its TeX if it brings that along."""
    for note in math.iter("{*}annotation", "annotation"):
        if note.get("encoding") in _TEX and (note.text or "").strip():
            return " ".join(note.text.split())
    return " ".join(_mathml(math, 0).split())


def of_word(formula: Any) -> str:
    """The text of Word's `oMath` or `oMathPara`."""
    return " ".join(_word(formula, 0).split())


def _grouped(text: str) -> str:
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def fraction(above: str, below: str) -> str:
    """A fraction on one line."""
    return f"{_grouped(above)}/{_grouped(below)}"


def scripts(base: str, below: str = "", above: str = "") -> str:
    """A base with what stands below and above behind it; "" for nothing."""
    below, above = below.strip(), above.strip()
    return (
        base + (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    )


def root(of: str, degree: str = "") -> str:
    """A root on one line; "" is the square root's degree."""
    return f"{_grouped(of)}^(1/{degree.strip()})" if degree.strip() else f"√{_grouped(of)}"


def _joined(parts: Iterable[tuple[str, str]]) -> str:
    """Pieces beside each other: what a fraction, a power or a root ends is told from what follows.

    Args:
        parts: each one's element and text.
    """
    out = ""
    was_whole = False
    for tag, text in parts:
        is_fraction = tag in ("mfrac", "f")
        if out and text and out[-1].isalnum() and text[0].isalnum():
            both_digits = out[-1].isdigit() and text[0].isdigit()
            if was_whole or is_fraction or (tag in _COMPOSED and both_digits):
                out += " "
        out += text
        was_whole = tag in _COMPOSED if text else was_whole
    return out


def matrix(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells on one line."""
    return "[" + "; ".join(", ".join(cell.strip() for cell in row) for row in rows) + "]"


_MATHML: dict[str, tuple[int, Callable[..., str]]] = {
    "mfrac": (2, fraction),
    "msup": (2, lambda base, above: scripts(base, above=above)),
    "mover": (2, lambda base, above: scripts(base, above=above)),
    "msub": (2, scripts),
    "munder": (2, scripts),
    "msubsup": (3, scripts),
    "munderover": (3, scripts),
    "mroot": (2, root),
}
"""Elements with a fixed number of parts, and what becomes of these."""


def _mathml(element: Any, depth: int) -> str:
    tag = local_name(element)
    if tag in _UNREAD or not tag:
        return ""
    if depth > _DEEPEST:
        return " ".join(element.itertext())
    children = [child for child in element if isinstance(child.tag, str)]
    if not children:
        text = "".join(element.itertext())
        spaced = tag in ("mtext", "mspace") or (
            tag == "mi" and _NAMED_FUNCTION.fullmatch(text.strip())
        )
        return f" {text} " if spaced else text.strip()
    if tag == "semantics":
        return _mathml(children[0], depth + 1)
    if tag == "mtable":
        return matrix([[_mathml(cell, depth + 2) for cell in row] for row in children])
    parts = [_mathml(child, depth + 1) for child in children]
    if tag in _MATHML and len(parts) == _MATHML[tag][0]:
        return _MATHML[tag][1](*parts)
    if tag == "mfenced":
        separator = (element.get("separators", ",").split() or [""])[0]
        return element.get("open", "(") + separator.join(parts) + element.get("close", ")")
    if tag == "mmultiscripts":
        return _multiscripts(children, parts)
    own = (element.text or "").strip()
    text = own + _joined(
        (local_name(child), part + (child.tail or "").strip())
        for part, child in zip(parts, children, strict=True)
    )
    return root(text) if tag == "msqrt" else text


def _multiscripts(children: Sequence[Any], parts: Sequence[str]) -> str:
    """A base with scripts on both sides: those before it stand before it."""
    after: list[str] = []
    before: list[str] = []
    side = after
    for child, part in zip(children[1:], parts[1:], strict=True):
        if local_name(child) == "mprescripts":
            side = before
        else:
            side.append(part)

    def written(those: list[str], base: str) -> str:
        return scripts(base, "".join(those[::2]), "".join(those[1::2]))

    return written(before, "") + written(after, parts[0])


def _word(element: Any, depth: int) -> str:
    tag = local_name(element)
    if depth > _DEEPEST:
        return " ".join(element.itertext())
    if tag == "t":
        return element.text or ""
    if not tag or tag.endswith("Pr") or tag == "del":
        return ""

    def part(name: str) -> str:
        return "".join(parts(name))

    def parts(name: str) -> list[str]:
        return [_word(child, depth + 1) for child in element if local_name(child) == name]

    if tag == "f":
        return fraction(part("num"), part("den"))
    if tag in ("sSup", "sSub", "sSubSup"):
        return scripts(part("e"), part("sub"), part("sup"))
    if tag == "sPre":
        return scripts("", part("sub"), part("sup")) + part("e")
    if tag in ("limLow", "limUpp"):
        low = tag == "limLow"
        return scripts(part("e"), **{"below" if low else "above": part("lim")})
    if tag == "rad":
        return root(part("e"), part("deg"))
    if tag == "nary":
        return scripts(_value(element, "chr", "∫"), part("sub"), part("sup")) + f" {part('e')}"
    if tag == "d":
        inner = _value(element, "sepChr", "|").join(parts("e"))
        return _value(element, "begChr", "(") + inner + _value(element, "endChr", ")")
    if tag == "func":
        return f"{part('fName')} {_grouped(part('e'))}"
    if tag == "bar":
        return part("e") + ("\u0332" if _value(element, "pos", "bot") == "bot" else "\u0305")
    if tag == "acc":
        return part("e") + _value(element, "chr", "\u0302")
    if tag == "m":
        rows = [child for child in element if local_name(child) == "mr"]
        return matrix([[_word(cell, depth + 2) for cell in row] for row in rows])
    if tag in ("eqArr", "oMathPara"):
        return "; ".join(filter(str.strip, parts("e") + parts("oMath")))
    return _joined((local_name(child), _word(child, depth + 1)) for child in element)


def _value(element: Any, name: str, default: str) -> str:
    """A property's character, such as the brackets around a matrix."""
    for properties in element:
        if local_name(properties).endswith("Pr"):
            for one in properties:
                if local_name(one) == name:
                    values = {key.rpartition("}")[2]: value for key, value in one.attrib.items()}
                    return str(values.get("val", ""))
    return default
