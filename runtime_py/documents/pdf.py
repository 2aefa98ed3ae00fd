"""PDF: the text of its pages, each for itself. Scanned ones, pictures of text, have none."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import pdf_fonts, pdf_spaces
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.parts import (
    Extracted,
    Skipped,
    going_on,
    one_line,
    reading,
)
from edgeinfinite.runtime_py.documents.pdf_forms import PageNotes
from edgeinfinite.runtime_py.documents.pdf_text import PageTexts, rejoined

_CATALOG = re.compile(
    rb"\b(\d{1,9})\s{1,9}(\d{1,5})\s{1,9}obj\s{0,9}<<[^>]{0,2000}?/Type\s{0,9}/Catalog\b"
)
_MOST_ABOVE = 50
"""Nodes of the tree that a page's fonts are looked for in."""


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`."""
    with reading(name, "PDF"), _heard() as heard:
        pdf_spaces.install()
        pdf_fonts.install()
        reader = _opened(data)
        if reader.is_encrypted:
            _decrypt(name, reader)
        skipped = Skipped(name, "pages")
        pages, written = PageTexts(budget), PageNotes(budget)
        texts: list[str] = []
        damage: list[str] = []
        total = 0
        for total, page in enumerate(_pages(reader, skipped, damage), 1):
            budget.begin_part()
            with going_on(skipped, f"page {total}"):
                text = pages.of(page)
                more = written.of(page)
                texts.append(f"{text}\n\n{more}".strip("\n") if more else text)
        empty = sum(not text.strip() for text in texts)
        if empty == len(texts):
            raise _nothing(name, total, skipped, pages.unknown)
        title = _title(reader)
        other = written.left_out(name, reader)
    pictures = f"{empty:,} of {total:,} pages of {name} have no text (pictures?)"
    mute = (
        f"{pages.unknown:,} signs of {name} are left out: their fonts don't say which letters they "
        "are; a text recognition (OCR) can read them"
    )
    notes = (*damage, *skipped.notes(total), *((pictures,) if empty else ()))
    cut = f"a page of {name} repeats its drawings thousands of times; not all of them are read"
    notes = (*notes, *((mute,) if pages.unknown else ()), *((cut,) if heard.cut else ()), *other)
    return Extracted(rejoined(texts), title, notes)


def _opened(data: bytes) -> Any:
    """The file, also if its end is missing, with all that tells where its objects are."""
    import pypdf

    reader = None
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        len(reader.pages)
        return reader
    except pypdf.errors.FileNotDecryptedError:
        return reader
    except Exception:
        root = _CATALOG.search(data)
        if root is None or b"startxref" in data[-2048:]:
            if reader is not None and next(_pages_by_number(reader), None) is not None:
                return reader
            raise
        trailer = b"\nxref\n0 0\ntrailer<</Size 1/Root %s %s R>>\nstartxref\n0\n%%%%EOF\n"
        return pypdf.PdfReader(io.BytesIO(data + trailer % root.groups()))


def _pages(reader: Any, skipped: Skipped, notes: list[str]) -> Iterator[Any]:
    """The pages in order; what comes after a break in their tree is said to be missing.

    Where the tree can't be followed at all, its pages come in the order of their numbers.
    """
    try:
        len(reader.pages)
    except Exception as error:  # whatever a damaged tree brings the library to raise
        reason = one_line(str(error))
        notes.append(f"the order of the pages is damaged ({reason}); they come by their numbers")
        yield from _pages_by_number(reader)
        return
    try:
        yield from reader.pages
    except (RecursionError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        skipped.add("those after that", error)


def _pages_by_number(reader: Any) -> Iterator[Any]:
    """The objects that are pages, with what they need of those above them."""
    from pypdf import PageObject
    from pypdf.generic import DictionaryObject, IndirectObject, NameObject

    numbers = {number for table in reader.xref.values() for number in table}
    for number in sorted(numbers | set(reader.xref_objStm)):
        try:
            found = reader.get_object(number)
            if not isinstance(found, DictionaryObject) or found.get("/Type") != "/Page":
                continue
            page = PageObject(reader, IndirectObject(number, 0, reader))
            page.update(found)
            above, left = found, _MOST_ABOVE
            while "/Resources" not in page and left and "/Parent" in above:
                above, left = above["/Parent"], left - 1
                if "/Resources" in above:
                    page[NameObject("/Resources")] = above["/Resources"]
            yield page
        except Exception:  # it is no page that can be read
            continue


def _nothing(name: str, pages: int, skipped: Skipped, unknown: int) -> EdgeInfiniteError:
    if len(skipped):
        return EdgeInfiniteError(
            f"{name} holds no page that can be read: {skipped.notes(max(pages, 1))[0]}; get the "
            "file again, or save it anew"
        )
    if unknown:
        return EdgeInfiniteError(
            f"{name} has {pages:,} pages whose fonts don't say which letters they draw; run a text "
            "recognition (OCR) on it first, for example: ocrmypdf --force-ocr in.pdf out.pdf"
        )
    return EdgeInfiniteError(
        f"{name} has {pages:,} pages and no text in them: it is probably scanned; run a text "
        "recognition (OCR) on it first, for example: ocrmypdf in.pdf out.pdf"
    )


def _title(reader: Any) -> str:
    try:
        return one_line(reader.metadata.title) if reader.metadata else ""
    except Exception:  # a damaged title loses no page
        return ""


def _decrypt(name: str, reader: Any) -> None:
    """Opens what every viewer opens without asking: encrypted, but with an empty password."""
    from pypdf import PasswordType

    if reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise EdgeInfiniteError(f"{name} is encrypted; save a copy without a password")


class _Heard(logging.Handler):
    """Takes what pypdf logs, which is every oddity that it mends, and what it leaves out."""

    cut = 0
    """Times that it left forms within a page out, because there were too many."""

    def emit(self, record: logging.LogRecord) -> None:
        self.cut += str(record.msg).startswith("Exceeded") and "form" in str(record.msg)


@contextmanager
def _heard() -> Iterator[_Heard]:
    logger, heard = logging.getLogger("pypdf"), _Heard()
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.propagate = propagates
