"""Plain text and Markdown, in whatever encoding."""

from __future__ import annotations

import codecs
from contextlib import suppress

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.parts import Extracted

# UTF-32 first: its mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT = 1 << 20
"""Bytes that decide on the encoding."""

_GUESSED = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
    *("gb18030", "big5", "cp932", "euc_jp", "cp949"),
)
"""Of Windows, of Russian mail, of East Asia. DOS and EBCDIC would fit too many texts by chance."""

_COMMONEST = "cp1252"
"""Preferred where it fits as well as the best one; it holds Latin-1's letters."""


def read(name: str, data: bytes) -> Extracted:
    """See `document.read_document`. Newlines become those of Unix; all else stays."""
    text, notes = _decoded(name, data)
    return Extracted(text.replace("\r\n", "\n").replace("\r", "\n"), notes=notes)


def _decoded(name: str, data: bytes) -> tuple[str, tuple[str, ...]]:
    mark, encoding = next((m for m in _MARKS if data.startswith(m[0])), (b"", "utf-8"))
    try:
        return data[len(mark) :].decode(encoding), ()
    except UnicodeDecodeError as error:
        if mark:
            raise EdgeInfiniteError(
                f"{name} says that it is {encoding.upper()}, but isn't (byte {error.start}); save "
                "it as UTF-8"
            ) from error
        place = f"byte {data[error.start]:#04x} at {error.start}"
    if b"\0" in data[:_LOOKED_AT]:
        raise EdgeInfiniteError(
            f"{name} is neither text nor a document of a known kind; give .txt, .md, .html, .epub, "
            ".pdf or .docx"
        )
    guess = _guess(name, data, place)
    note = f"{name} isn't UTF-8 ({place}); it is read as {guess}, which is a guess"
    return data.decode(guess), (note,)


def _guess(name: str, data: bytes, place: str) -> str:
    try:
        from charset_normalizer import from_bytes
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            f"{name} isn't UTF-8 text ({place}); convert it to UTF-8 first, or let the encoding be "
            "guessed: pip install 'edgeinfinite[documents]'"
        ) from error
    found = from_bytes(data[:_LOOKED_AT], cp_isolation=list(_GUESSED), enable_fallback=False)
    guesses = []
    if (best := found.best()) is not None:
        as_good = {
            name
            for match in found
            if (match.chaos, match.coherence) == (best.chaos, best.coherence)
            for name in match.could_be_from_charset
        }
        guesses = [_COMMONEST] if _COMMONEST in as_good else []
        guesses += [best.encoding, _COMMONEST]
    for encoding in guesses:
        with suppress(UnicodeDecodeError):  # beyond the bytes that were looked at
            data.decode(encoding)
            return encoding
    raise EdgeInfiniteError(
        f"{name} isn't UTF-8 text ({place}), nor can its encoding be guessed; convert it to UTF-8 "
        "first"
    )
