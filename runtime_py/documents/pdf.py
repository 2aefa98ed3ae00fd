"""PDF: the text of its pages. Pictures of text, as scanners make them, have none."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.parts import Extracted, one_line, reading, tidied


def read(name: str, data: bytes) -> Extracted:
    """See `document.read_document`."""
    with reading(name, "PDF"), _quiet():
        import pypdf

        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            _decrypt(name, reader)
        pages = [tidied(page.extract_text()) for page in reader.pages]
        empty = sum(not page.strip() for page in pages)
        if empty == len(pages):
            raise EdgeInfiniteError(
                f"{name} has {len(pages):,} pages and no text in them: it is probably scanned; run "
                "a text recognition (OCR) on it first"
            )
        title = one_line(reader.metadata.title) if reader.metadata else ""
    notes = (f"{empty:,} of {len(pages):,} pages of {name} have no text (pictures?)",)
    return Extracted("\n\n".join(p for p in pages if p.strip()), title, notes if empty else ())


def _decrypt(name: str, reader: Any) -> None:
    """Opens what every viewer opens without asking: encrypted, but with an empty password."""
    from pypdf import PasswordType

    if reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise EdgeInfiniteError(f"{name} is encrypted; save a copy without a password")


@contextmanager
def _quiet() -> Iterator[None]:
    """pypdf logs every oddity of a file that it mends."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
