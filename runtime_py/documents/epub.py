"""EPUB: the chapters in the order of the book's spine, each for itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import markup, plain
from edgeinfinite.runtime_py.documents.archive import Archive, resolved
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.parts import (
    Extracted,
    Skipped,
    going_on,
    one_line,
    reading,
)

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")
_PICTURES = ("image/", "audio/", "video/", "font/")
_PAGE_SUFFIXES = (".xhtml", ".html", ".htm", ".xht")
_MARKUP = re.compile(rb"\s*<|\xef\xbb\xbf\s*<|\xff\xfe<\0|\xfe\xff\0<")
_FONTS_ONLY = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Publishers may obfuscate fonts without encrypting the text."""


@dataclass
class _Book:
    """What the package says.

    Args:
        title: of the book.
        pages: paths of the chapters in reading order, each once.
        notes: what is strange about them.
    """

    title: str = ""
    pages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`."""
    archive = Archive(name, data, budget)
    with reading(name, "EPUB"):
        from lxml import etree  # noqa: F401  (if it is missing, that is said once)

        locked = _locked(name, archive)
        skipped = Skipped(name, "chapters")
        book = _book(name, archive, skipped)
        texts, notes = [], list(book.notes)
        sheets = _Sheets(archive)
        for path in book.pages:
            budget.begin_part()
            with going_on(skipped, path):
                if path in locked:
                    raise ValueError("it is encrypted (DRM)")
                chapter = _chapter(path, archive.read(path), budget, sheets)
                notes += chapter.notes
                texts.append(chapter.text)
        if len(skipped) and not any(map(str.strip, texts)):
            if book.pages and all(path in locked for path in book.pages):
                raise _drm(name)
            raise EdgeInfiniteError(
                f"{name} holds no chapter that can be read: {skipped.notes(len(skipped))[0]}"
            )
    text = "\n\n".join(text for text in texts if text.strip())
    total = max(len(book.pages), len(texts) + len(skipped))
    return Extracted(text, book.title, (*skipped.notes(total), *archive.notes(), *_few(notes)))


class _Sheets:
    """The book's style sheets, each read once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: dict[str, str] = {}

    def text(self, folder: str, reference: str) -> str:
        """What one says; "" where it is missing or damaged: it says how text looks, not what."""
        path = resolved(folder, reference)
        if path not in self._known:
            try:
                self._known[path] = self._archive.read(path).decode("utf-8", "replace")
            except (KeyError, ValueError):
                self._known[path] = ""
        return self._known[path]


def _chapter(path: str, data: bytes, budget: Budget, sheets: _Sheets) -> Extracted:
    if not _MARKUP.match(data) and not path.lower().endswith(_PAGE_SUFFIXES):
        return plain.read(path, data, budget)
    folder = posixpath.dirname(path)
    return markup.extracted(path, data, budget, lambda href: sheets.text(folder, href))


def _few(notes: list[str], most: int = 5) -> list[str]:
    more = len(notes) - most
    return notes if more <= 0 else [*notes[:most], f"and {more:,} more notes of this kind"]


def _drm(name: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{name} is encrypted (DRM), so only its shop's own programs can read it; give a copy "
        "without"
    )


def _locked(name: str, archive: Archive) -> set[str]:
    """Paths of parts that are encrypted, but for fonts.

    Raises:
        EdgeInfiniteError: it doesn't say which, so all may be.
    """
    if _ENCRYPTION not in archive:
        return set()
    try:
        root = archive.xml(_ENCRYPTION)
    except ValueError:
        return set()
    locked = set()
    for entry in root.iter("{*}EncryptedData"):
        methods = [one.get("Algorithm") for one in entry.iter("{*}EncryptionMethod")]
        if all(method in _FONTS_ONLY for method in methods):
            continue
        found = [resolved("", one.get("URI") or "") for one in entry.iter("{*}CipherReference")]
        if not found:
            raise _drm(name)
        locked.update(found)
    return locked


def _book(name: str, archive: Archive, skipped: Skipped) -> _Book:
    """What the package says, and where it is damaged, what the archive has.

    Raises:
        ValueError: no package and no page is there.
    """
    try:
        path = _package_path(archive)
        package = archive.xml(path)
    except (KeyError, ValueError) as error:
        pages = _pages_by_name(archive)
        if not pages:
            raise
        note = f"{name} has no package ({one_line(str(error))}); its pages come in order of names"
        return _Book("", pages, [note])
    book = _Book(_title(package))
    folder = posixpath.dirname(path)
    items: dict[str, list[Any]] = {}  # some books give two parts one id
    for item in package.iter("{*}item"):
        if item.get("id") is not None and item.get("href") is not None:
            items.setdefault(item.get("id"), []).append(item)
    _follow_spine(package, items, folder, archive, book, skipped)
    if not book.pages and not len(skipped):
        book.pages = [
            resolved(folder, item.get("href"))
            for item in chain.from_iterable(items.values())
            if _is_page(item, archive, folder) and not _is_contents(item)
        ]
        book.pages = book.pages or _pages_by_name(archive)
        book.notes.append(f"{name} states no order of its chapters; they come as they are listed")
    return book


def _pages_by_name(archive: Archive) -> list[str]:
    return sorted(path for path in archive.paths if path.lower().endswith(_PAGE_SUFFIXES))


def _follow_spine(
    package: Any,
    items: dict[str, list[Any]],
    folder: str,
    archive: Archive,
    book: _Book,
    skipped: Skipped,
) -> None:
    repeated: set[str] = set()
    seen: set[str] = set()
    spine = [entry.get("idref") for entry in package.iter("{*}itemref")]
    for name in dict.fromkeys(spine):
        if name not in items:
            skipped.add(str(name), "the book names it, but doesn't say where it is")
    several = [name for name in dict.fromkeys(spine) if len(items.get(name, ())) > 1]
    if several:
        names = ", ".join(several[:3]) + (" and others" if len(several) > 3 else "")
        book.notes.append(f"the book has several parts of the name {names}")
    for item in _in_order(spine, items, archive, folder):
        if _is_contents(item):
            continue
        path = resolved(folder, item.get("href"))
        if path in seen:
            repeated.add(path)
            continue
        seen.add(path)
        if path not in archive:
            skipped.add(path, "it is missing in the file")
        elif _is_page(item, archive, folder):
            book.pages.append(path)
        elif _type(item) == "image/svg+xml" or not _type(item).startswith("image/"):
            skipped.add(path, f"it is {item.get('media-type')}, no text")
    if repeated:
        book.notes.append(f"{len(repeated):,} chapters that the book names again are read once")


def _in_order(
    spine: list[str], items: dict[str, list[Any]], archive: Archive, folder: str
) -> Iterator[Any]:
    """The parts that the spine names; all of one name where it is named first."""
    begun: set[str] = set()
    for name in spine:
        if name not in begun or len(items.get(name, ())) == 1:
            yield from _meant(name, items, archive, folder)
        begun.add(name)


def _meant(name: str, items: dict[str, list[Any]], archive: Archive, folder: str) -> list[Any]:
    """The parts of one name: of several the pages, where any of them is one."""
    found = [_readable(item, items) for item in items.get(name, ())]
    pages = [item for item in found if _is_page(item, archive, folder)] if len(found) > 1 else []
    return pages or found


def _readable(item: Any, items: dict[str, list[Any]]) -> Any:
    """The item, or what the book gives for readers that can't show it."""
    seen = set()
    found = item
    while _type(found) not in _PAGES and found.get("fallback") in items:
        if found.get("id") in seen:
            return item
        seen.add(found.get("id"))
        found = items[found.get("fallback")][0]
    return found if _type(found) in _PAGES else item


def _is_contents(item: Any) -> bool:
    return "nav" in (item.get("properties") or "").split()


def _type(item: Any) -> str:
    return (item.get("media-type") or "").partition(";")[0].strip().lower()


def _is_page(item: Any, archive: Archive, folder: str) -> bool:
    """By what the book says, the suffix, or the contents."""
    kind = _type(item)
    path = resolved(folder, item.get("href"))
    if kind in _PAGES or path.lower().endswith(_PAGE_SUFFIXES):
        return True
    if path not in archive or (kind.startswith(_PICTURES) and kind != "image/svg+xml"):
        return False
    if kind.startswith("text/") and kind != "text/css":
        return True
    if kind in ("text/css", "application/x-dtbncx+xml", "application/javascript"):
        return False
    try:
        whole = archive.read(path)
    except (KeyError, ValueError):
        return False
    is_picture = b"<svg" in whole and b"<html" not in whole and b"<text" not in whole
    return _MARKUP.match(whole) is not None and not is_picture


def _package_path(archive: Archive) -> str:
    try:
        root = archive.xml(_CONTAINER).find(".//{*}rootfile")
        if root is not None and (path := resolved("", root.get("full-path") or "")) in archive:
            return path
    except (KeyError, ValueError):
        pass
    found = sorted(path for path in archive.paths if path.lower().endswith(".opf"))
    if not found:
        raise ValueError(f"{_CONTAINER} names no package")
    return found[0]


def _title(package: Any) -> str:
    found = package.find(".//{http://purl.org/dc/elements/1.1/}title")
    return "" if found is None else one_line("".join(found.itertext()))
