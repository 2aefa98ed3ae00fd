"""One decoder for the texts of all documents.

In this order: a mark, the encoding that the text states, UTF-8, UTF-8 with few errors, and a guess,
which is said.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

# UTF-32 first: its mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT = 1 << 18
"""Bytes that decide on a guess."""

_GUESSED = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
    *("gb18030", "big5", "cp932", "euc_jp", "cp949", "cp874"),
)
"""Of Windows, of Russian mail, of East Asia, of Thailand."""

_RARE = ("mac_cyrillic", "mac_roman", "cp866", "iso8859_2", "iso8859_5")
"""Of Macs, DOS and Unix as they were. They fit many texts by chance, so that they have to fit
better than all others. EBCDIC would fit too many."""

_LITTLE = 0.03
_MUCH = 0.2
"""More of a language's usual letters, as charset_normalizer counts them."""

_COMMONEST = "cp1252"
"""Preferred where it fits as well as the best one; it holds Latin-1's letters."""

_AS_BROWSERS = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift_jis_2004", "shift_jisx0213"), "cp932"),
    **{"euc_kr": "cp949", "iso8859-9": "cp1254", "tis-620": "cp874", "iso8859-11": "cp874"},
    **{"big5": "big5hkscs"},
}
"""What pages that state one encoding are written in: its larger relative (WHATWG's table)."""

_OTHER_NAMES = {
    **dict.fromkeys(("csiso88598e", "csiso88598i", "iso-8859-8-e", "logical", "visual"), "hebrew"),
    **{"iso-8859-6-e": "iso8859-6", "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u"},
    **{"x-mac-ukrainian": "mac-cyrillic", "unicode-1-1-utf-8": "utf-8"},
}
"""Names of WHATWG's table that Python doesn't know."""

_BY_NUMBER = re.compile(r"(?:windows|win|dos|ibm|cp)-?(\d{3,5})")
_NO_ENCODINGS = frozenset(
    (
        "idna",
        "punycode",
        "undefined",
        "unicode_escape",
        "raw_unicode_escape",
        "utf-7",
        "mbcs",
        "oem",
    )
)
"""Codecs of Python's that no text is written in."""

_PAIRS = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_HALF = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""Halves of a pair of surrogates as if they were characters, which UTF-8 doesn't know."""

_HZ = re.compile(rb"~\{((?:[\x21-\x77][\x21-\x7e])+)~\}")
_COMMON_HANZI = 0x57
"""The first byte of GB 2312's signs and its usual characters, at most; letters of ASCII words are
mostly beyond."""

_HEAD = 4096
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.S)
_RAW = re.compile(rb"<(script|style|textarea|title|noscript)\b.*?(?:</\1|\Z)", re.S | re.I)
"""What only looks like tags inside."""

_META = re.compile(rb"<meta\b((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)", re.I)
_ATTRIBUTE = re.compile(rb"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_XML = re.compile(rb"\s*<\?xml\b[^<>]*?\bencoding\s*=\s*[\"']([\w.:-]+)", re.I)
_BINARY = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
"""Control characters that no text has; all others are those of terminals and printers."""

_SOME = 4
"""NUL bytes, all in one half, that aren't there by chance."""

_FEW = 1000
"""Characters, at least, for each error of a text that is read in spite of it."""


@dataclass(frozen=True)
class Decoded:
    """A text, and what the user is to know of its encoding."""

    text: str
    notes: tuple[str, ...] = ()


def stated_encoding(data: bytes) -> str:
    """What a page says of its own encoding, "" if nothing."""
    if found := _XML.match(data[:_HEAD]):
        return found[1].decode("ascii", "replace")
    for tag in _META.finditer(_RAW.sub(b"", _COMMENT.sub(b"", data[:_HEAD]))):
        given = {name.lower(): b"".join(values) for name, *values in _ATTRIBUTE.findall(tag[1])}
        said = given.get(b"charset", b"").strip()
        if not said and b"http-equiv" in given and b"content" in given:
            found = _CHARSET.search(given[b"content"])
            said = found[1] if found else b""
        if said:
            return said.decode("ascii", "replace")
    return ""


def _known(label: str) -> str:
    """The codec of an encoding by any name that pages have for it; "" if nobody knows it."""
    label = _OTHER_NAMES.get(label.lower(), label.lower())
    while label.startswith("x-"):
        label = label.removeprefix("x-")
    by_number = _BY_NUMBER.fullmatch(label)
    for name in (label, f"cp{by_number[1]}" if by_number else "", label.removesuffix("-i")):
        with suppress(LookupError, ValueError):
            found = codecs.lookup(name) if name else None
            if found is not None and found._is_text_encoding:
                return "" if found.name.replace("-", "_") in _NO_ENCODINGS else found.name
    return ""


def decoded(name: str, data: bytes, stated: str = "") -> Decoded:
    """A document's or a part's text.

    Args:
        name: the document's or the part's, for notes and errors.
        data: its bytes.
        stated: the encoding that it states; "" if none.

    Raises:
        EdgeInfiniteError: it is no text, or in no encoding that is known.
    """
    found = _by_mark(name, data) or _by_pattern(name, data) or _by_statement(name, data, stated)
    found = found or _by_escapes(name, data) or _as_utf8(name, data) or _by_guess(name, data)
    return _without_nul(name, found)


def _by_mark(name: str, data: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            errors = 0 if _is_strict(data[len(mark) :], encoding) else text.count("\ufffd")
            if errors and (errors - 1) * 20 >= len(text) - 1:
                raise EdgeInfiniteError(
                    f"{name} says that it is {encoding.upper()}, but isn't; save it as UTF-8"
                )
            return Decoded(text, _mended(name, encoding, errors))
    return None


def _by_pattern(name: str, data: bytes) -> Decoded | None:
    """UTF-16 without a mark: in one half of the bytes most are NUL, in the other none is."""
    head = data[: _HEAD & ~1]
    if len(data) % 2 or len(head) < 4 or b"\0" not in head:
        return None
    for encoding, high, low in (
        ("utf-16-le", head[1::2], head[::2]),
        ("utf-16-be", head[::2], head[1::2]),
    ):
        zeros = high.count(0)
        if low.count(0) or not _is_strict(data, encoding):
            continue
        text = data.decode(encoding)
        if zeros * 2 < len(high) and (zeros < _SOME or not _is_assigned(text[:_HEAD])):
            continue  # in scripts other than Latin only spaces and ends of lines have a NUL
        if not _BINARY.search(text):
            note = f"{name} is read as {encoding.upper()}, which is a guess: it has no mark"
            return Decoded(text, () if text.lstrip().startswith("<?xml") else (note,))
    return None


def _by_escapes(name: str, data: bytes) -> Decoded | None:
    """East Asian mail in seven bits, which looks like ASCII but for its escapes."""
    if _is_hz(data):
        return Decoded(data.decode("hz"), (f"{name} is read as hz: it has the escapes of that",))
    encoding = "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_2"
    if b"\x1b$" not in data or not data.isascii() or not _is_strict(data, encoding):
        return None
    text = data.decode(encoding)
    if text.isascii():
        return None
    return Decoded(text, (f"{name} is read as {encoding}: it has the escapes of that",))


def _is_hz(data: bytes) -> bool:
    """Whether all that HZ's escapes enclose (RFC 1843) is Chinese, as no other text has it."""
    if b"~{" not in data or not data.isascii():
        return False
    inside = b"".join(_HZ.findall(data))
    common = sum(first <= _COMMON_HANZI for first in inside[::2])
    closed = b"~{" not in _HZ.sub(b"", data)
    return closed and 4 * common > len(inside) and _is_strict(data, "hz")


def _is_assigned(text: str) -> bool:
    """Whether all characters have a meaning, as those of text by chance haven't."""
    return not any(unicodedata.category(sign) in ("Cn", "Co", "Cs") for sign in text)


def _by_statement(name: str, data: bytes, stated: str) -> Decoded | None:
    if not stated:
        return None
    encoding = _known(stated)
    if not encoding:
        return None
    if encoding.startswith(("utf-16", "utf-32")):
        encoding = "utf-8"  # it was read as ASCII
    encoding = _AS_BROWSERS.get(encoding, encoding)
    if encoding == "utf-8":
        return None
    is_utf8 = _is_strict(data, "utf-8") and not data.isascii()
    if _is_strict(data, encoding):
        note = f"{name} states {stated}, so it is read as that; it could be UTF-8, too"
        return Decoded(data.decode(encoding), (note,) if is_utf8 else ())
    if is_utf8:
        return Decoded(data.decode(), (f"{name} states {stated}, but is UTF-8",))
    text = data.decode(encoding, "replace")
    errors = text.count("\ufffd")
    if errors == 1 or errors * 20 < len(text):
        return Decoded(text, _mended(name, encoding, errors))
    return None


def _as_utf8(name: str, data: bytes) -> Decoded | None:
    with suppress(UnicodeDecodeError):
        return Decoded(data.decode())
    mended = _PAIRS.sub(
        _joined_pair, data
    )  # characters beyond 65,535 in two halves, as of databases
    if mended != data:
        with suppress(UnicodeDecodeError):
            note = f"{name} is no right UTF-8: it is CESU-8, and read as that"
            return Decoded(mended.decode(), (note,))
    mended, halves = _HALF.subn(b"\xef\xbf\xbd", mended)
    text = mended.decode("utf-8", "replace")
    errors = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    right = len(text) - len(text.encode("ascii", "ignore")) - text.count("\ufffd")
    cut = errors == 1 and text.endswith("\ufffd") and data[-2:-1] >= b"\x80"
    if cut or right + halves >= 2 * (errors - halves):
        return Decoded(text, _mended(name, "utf-8", errors))
    return None


def _joined_pair(found: re.Match[bytes]) -> bytes:
    halves = found[0].decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le").encode()


def _mended(name: str, encoding: str, errors: int) -> tuple[str, ...]:
    if not errors:
        return ()
    places = "one place" if errors == 1 else f"{errors:,} places"
    return (f"{name} is no right {encoding.upper()} in {places}, where \ufffd stands now",)


def _by_guess(name: str, data: bytes) -> Decoded:
    place = _first_error(data)
    if b"\0" in data:
        raise _no_text(name)
    encoding = _guess(name, data, place)
    text = data.decode(encoding, "replace")
    errors = 0 if _is_strict(data, encoding) else text.count("\ufffd")
    note = f"{name} isn't UTF-8 ({place}); it is read as {encoding}, which is a guess"
    return Decoded(text, (note, *_mended(name, encoding, errors)))


def _guess(name: str, data: bytes, place: str) -> str:
    try:
        from charset_normalizer import from_bytes
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            f"{name} isn't UTF-8 text ({place}); convert it to UTF-8 first, or let the encoding be "
            f"guessed: {install_extra('documents')}"
        ) from error
    names = [*_GUESSED, *_RARE]
    found = list(from_bytes(_sample(data), cp_isolation=names, enable_fallback=False))
    common = [match for match in found if set(match.could_be_from_charset) & set(_GUESSED)]
    guesses: list[str] = []
    if common:
        best = common[0]
        as_good = {
            name
            for match in common
            if (match.chaos, match.coherence) == (best.chaos, best.coherence)
            or (_COMMONEST in match.could_be_from_charset and _is_close(match, best))
            for name in match.could_be_from_charset
            if name in _GUESSED
        }
        guesses = [min(as_good, key=_GUESSED.index), _COMMONEST]
    if found and (not common or _fits_better(found[0], common[0])):
        guesses.insert(0, found[0].encoding)
    for encoding in guesses:
        if _is_strict(data, encoding):
            return encoding
    for encoding in guesses:  # few errors beyond the bytes that were looked at
        if data.decode(encoding, "replace").count("\ufffd") * _FEW <= len(data):
            return encoding
    raise EdgeInfiniteError(
        f"{name} isn't UTF-8 text ({place}), nor can its encoding be guessed; convert it to UTF-8 "
        "first"
    )


def _is_close(one: CharsetMatch, best: CharsetMatch) -> bool:
    return one.chaos <= best.chaos + _LITTLE and one.coherence >= best.coherence - _LITTLE


def _fits_better(one: CharsetMatch, other: CharsetMatch) -> bool:
    less_strange = one.chaos < other.chaos and one.coherence > other.coherence - _MUCH
    return less_strange or (one.chaos == other.chaos and one.coherence > other.coherence + _MUCH)


def _sample(data: bytes) -> bytes:
    """Bytes around the first one that isn't ASCII, from a line's beginning on."""
    first = len(data) - len(data.lstrip(bytes(range(128))))
    start = data.rfind(b"\n", 0, first) + 1 if first > _LOOKED_AT // 2 else 0
    return data[start : start + _LOOKED_AT]


def _without_nul(name: str, found: Decoded) -> Decoded:
    """Text of a file that isn't binary; the few NULs that a crash leaves are told."""
    strange = len(_BINARY.findall(found.text)) if _BINARY.search(found.text) else 0
    nul = found.text.count("\0")
    inner = found.text.rstrip("\0").count("\0")  # buffers are filled up with them
    if (strange - nul) * 10 > len(found.text) or inner * _FEW > len(found.text):
        raise _no_text(name)
    if not nul:
        return found
    note = f"{name} has {nul:,} NUL bytes, as no text has; they are left out"
    return Decoded(found.text.replace("\0", ""), (*found.notes, note))


def _no_text(name: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{name} is neither text nor a document of a known kind; give .txt, .md, .html, .epub, "
        ".pdf or .docx"
    )


def _is_strict(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeError:
        return False
    return True


def _first_error(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"byte {data[error.start]:#04x} at {error.start}"
    return "it has NUL bytes"
