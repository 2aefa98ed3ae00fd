"""EPUB and Word files are zip archives: what one is, and limits on what comes out of it."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath

from edgeinfinite.errors import EdgeInfiniteError

MOST_BYTES = 64 << 20
"""Of all texts in an archive, unpacked. The Bible has 5 MB."""

MOST_MEMBERS = 20_000

_TEXTS = {".xml", ".rels", ".opf", ".xhtml", ".html", ".htm", ".ncx", ""}
"""Suffixes of members that the readers of documents unpack; they leave pictures alone."""

_PASSWORD = 0x1


def opened(name: str, data: bytes) -> zipfile.ZipFile:
    """An archive whose texts are safe to unpack: `zipfile` unpacks no more than their stated sizes.

    Raises:
        EdgeInfiniteError: it is damaged, encrypted or would unpack to far more than a document.
    """
    try:
        found = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise EdgeInfiniteError(
            f"{name} is damaged ({error}); get the file again, or save it anew"
        ) from error
    members = found.infolist()
    if any(member.flag_bits & _PASSWORD for member in members):
        raise EdgeInfiniteError(f"{name} is encrypted; save a copy without a password")
    texts = sum(
        member.file_size
        for member in members
        if PurePosixPath(member.filename).suffix.lower() in _TEXTS
    )
    if texts > MOST_BYTES or len(members) > MOST_MEMBERS:
        raise EdgeInfiniteError(
            f"{name} would unpack to {texts / 1e6:,.0f} MB of text in {len(members):,} files; no "
            "document is so large, so it isn't read"
        )
    return found


def kind(name: str, data: bytes) -> str:
    """Whether an archive is `epub` or `docx`.

    Raises:
        EdgeInfiniteError: it is neither, or as in `opened`.
    """
    members = set(opened(name, data).namelist())
    if "META-INF/container.xml" in members:
        return "epub"
    if "word/document.xml" in members:
        return "docx"
    raise EdgeInfiniteError(
        f"{name} is an archive, but neither EPUB nor Word (.docx); unpack it and give a document"
    )
