"""EPUB: the chapters in the order of the book's spine."""

from __future__ import annotations

import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import archive, markup
from edgeinfinite.runtime_py.documents.parts import Extracted, one_line, reading, tidied

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Publishers may obfuscate fonts without encrypting the text."""


def read(name: str, data: bytes) -> Extracted:
    """See `document.read_document`."""
    with archive.opened(name, data) as book, reading(name, "EPUB"):
        _check_readable(name, book)
        package_path = _package_path(book)
        package = _parsed(book.read(package_path))
        pages = []
        missing = 0
        for path in _spine(package, posixpath.dirname(package_path)):
            try:
                pages.append(markup.extracted(book.read(path)).text)
            except KeyError:
                missing += 1
        text = tidied("\n\n".join(page for page in pages if page.strip()))
    notes = (f"{missing} chapters of {name} are missing in the file",) if missing else ()
    return Extracted(text, _title(package), notes)


def _check_readable(name: str, book: zipfile.ZipFile) -> None:
    if _ENCRYPTION not in book.namelist():
        return
    for method in _parsed(book.read(_ENCRYPTION)).iterfind(".//{*}EncryptionMethod"):
        if method.get("Algorithm") not in _FONTS_ONLY:
            raise EdgeInfiniteError(
                f"{name} is encrypted (DRM), so only its shop's own programs can read it; give a "
                "copy without"
            )


def _package_path(book: zipfile.ZipFile) -> str:
    root = _parsed(book.read(_CONTAINER)).find(".//{*}rootfile")
    if root is None:
        raise ValueError(f"{_CONTAINER} names no package")
    return str(root.get("full-path"))


def _spine(package: Any, folder: str) -> list[str]:
    """The pages' paths in the archive, in reading order, without the table of contents."""
    items = {
        item.get("id"): item
        for item in package.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES and "nav" not in (item.get("properties") or "").split()
    }
    return [
        posixpath.normpath(posixpath.join(folder, unquote(items[reference].get("href") or "")))
        for entry in package.iterfind(".//{*}spine/{*}itemref")
        if (reference := entry.get("idref")) in items
    ]


def _title(package: Any) -> str:
    found = package.find(".//{http://purl.org/dc/elements/1.1/}title")
    return "" if found is None else one_line(found.text)


def _parsed(data: bytes) -> Any:
    """XML without entities of its own and without files from elsewhere."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(data, parser)
