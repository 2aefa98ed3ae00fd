"""What kind a document is, by each format's own rules; the suffix decides where two fit."""

from __future__ import annotations

import re
from pathlib import PurePath

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import opc
from edgeinfinite.runtime_py.documents.archive import Archive
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.parts import reading

KINDS = ("txt", "md", "html", "epub", "pdf", "docx")

_OF_SUFFIX = {
    **{kind: kind for kind in KINDS},
    "markdown": "md",
    **dict.fromkeys(("htm", "xhtml", "xht"), "html"),
    **dict.fromkeys(("docm", "dotx", "dotm"), "docx"),
}
_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_PDF_NEAR = 1024
"""Bytes in which readers of PDFs look for its header."""

_PDF = re.compile(rb"%PDF-\d\.\d")
_PDF_OBJECT = re.compile(rb"\b\d+\s{1,4}\d+\s{1,4}obj\s{0,9}(?:<<|[\[(%\d])")
"""With what an object may begin with; a text on PDFs goes on in words."""

_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,200}(?:<\?xml[^<>]{0,200}>\s{0,200})?<(?:!doctype\s+html|html)\b", re.I
)


def kind_of(name: str, data: bytes, budget: Budget) -> str:
    """One of `KINDS`.

    Raises:
        EdgeInfiniteError: it is damaged, encrypted or of another known kind.
    """
    stated = _OF_SUFFIX.get(PurePath(name).suffix[1:].lower(), "")
    if _is_pdf(data, stated):
        return "pdf"
    if data.startswith(_OLD_OFFICE):
        raise EdgeInfiniteError(
            f"{name} is encrypted or of an old Office format; save it as .docx without a password"
        )
    if data.startswith(b"{\\rtf"):
        raise EdgeInfiniteError(f"{name} is RTF, which isn't read; save it as .docx or plain text")
    if data.startswith(_ZIP):
        return _of_archive(name, data, stated, budget)
    if stated not in ("txt", "md") and _HTML.match(data):  # such as one that asks to log in
        return "html"
    if stated in ("epub", "docx"):
        return _of_archive(name, data, stated, budget)
    return stated or "txt"


def is_plain(name: str, data: bytes) -> bool:
    """Whether a document is UTF-8 text that only needs to be decoded."""
    stated = _OF_SUFFIX.get(PurePath(name).suffix[1:].lower(), "txt")
    if stated not in ("txt", "md") or data[:200].lstrip().startswith(
        (*_ZIP, _OLD_OFFICE, b"{\\rtf", b"<")
    ):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"%PDF-" not in data[:_PDF_NEAR]


def _is_pdf(data: bytes, stated: str) -> bool:
    """A PDF's header stands at its beginning, or near to it after what a program put before.

    A text may speak of it, so that it takes a PDF's objects, too, where no suffix says PDF.
    """
    found = _PDF.search(data[:_PDF_NEAR])
    if stated == "pdf":
        return found is not None or b"%PDF-" in data[:_PDF_NEAR]
    if found is None:
        return False
    has_objects = _PDF_OBJECT.search(data, found.end(), found.end() + (1 << 20)) is not None
    if found.start() == 0:
        return has_objects
    is_line = data[found.start() - 1 : found.start()] in (b"\n", b"\r", b"\0", b"\xbf")
    return has_objects and is_line and stated == "" and b"startxref" in data[-2048:]


def _of_archive(name: str, data: bytes, stated: str, budget: Budget) -> str:
    archive = Archive(name, data, budget)
    with reading(name, "EPUB and Word"):
        is_epub = "META-INF/container.xml" in archive or _says_epub(archive)
        if is_epub and stated != "docx":
            return "epub"
        if opc.is_word(archive):
            return "docx"
        if is_epub:
            return "epub"
        other = opc.other_kind(archive)
    if other:
        raise EdgeInfiniteError(f"{name} is {other}, which isn't read; save it as .docx or PDF")
    if stated == "epub" and any(path.lower().endswith(".opf") for path in archive.paths):
        return "epub"
    raise EdgeInfiniteError(
        f"{name} is an archive, but neither EPUB nor Word (.docx); unpack it and give a document"
    )


def _says_epub(archive: Archive) -> bool:
    try:
        return archive.read("mimetype").strip() == b"application/epub+zip"
    except (KeyError, ValueError):
        return False
