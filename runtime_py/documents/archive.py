"""EPUB and Word files are zip archives: their parts, unpacked under a budget."""

from __future__ import annotations

import io
import posixpath
import unicodedata
import zipfile
from typing import Any
from urllib.parse import unquote

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.salvage import salvaged

MOST_MEMBERS = 100_000
_NAMED = 3
_BLOCK = 1 << 16
_PASSWORD = 0x1


class Archive:
    """The parts of an archive by their names.

    Args:
        name: the document's.
        data: its bytes.
        budget: counts what is unpacked, whatever the archive states.

    Raises:
        EdgeInfiniteError: it is damaged, or has too many members.
    """

    def __init__(self, name: str, data: bytes, budget: Budget) -> None:
        self._budget = budget
        self._name = name
        self._is_cut = False
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # whatever a damaged directory brings zipfile to raise
            found = salvaged(data, budget)
            if found is None:
                raise EdgeInfiniteError(
                    f"{name} is damaged ({error}); get the file again, or save it anew"
                ) from error
            self._zip, self._is_cut = found, True
        members = self._zip.infolist()
        if len(members) > MOST_MEMBERS:
            raise EdgeInfiniteError(
                f"{name} has {len(members):,} files inside; no document has so many, so it isn't "
                "read"
            )
        self.mended: list[str] = []
        self._members = {_plain(unquote(member.filename)): member for member in members}
        self._members |= {_plain(member.filename): member for member in members}

    def __contains__(self, path: str) -> bool:
        return _plain(path) in self._members

    @property
    def paths(self) -> list[str]:
        """All parts' names as the archive has them."""
        return list(dict.fromkeys(member.filename for member in self._members.values()))

    def size(self, path: str) -> int:
        """Bytes of a part, as the archive states them."""
        return self._members[_plain(path)].file_size

    def read(self, path: str) -> bytes:
        """A part's bytes.

        Raises:
            KeyError: there is no such part.
            TooMuch: it unpacks to more than is left of the budget.
            ValueError: it is encrypted or damaged.
        """
        member = self._members.get(_plain(path))
        if member is None:
            raise KeyError(f"{path} isn't in the file")
        if member.flag_bits & _PASSWORD:
            raise ValueError("it is encrypted; save a copy without a password")
        self._budget.check_unpacking(member.file_size)
        blocks = []
        try:
            with self._zip.open(member) as part:
                while block := part.read(_BLOCK):
                    self._budget.unpack(len(block))
                    blocks.append(block)
        except EdgeInfiniteError:
            raise
        except Exception as error:  # zlib's, lzma's, zipfile's own, of the operating system
            raise ValueError(f"it is damaged ({error})") from error
        return b"".join(blocks)

    def xml(self, path: str) -> Any:
        """A part's root as XML, mended as far as it can be; then `mended` has its path.

        Raises:
            ValueError: as `read`, or nothing of it is XML.
        """
        root, is_mended = parsed(self.read(path))
        if is_mended and path not in self.mended:
            self.mended.append(path)
        return root

    def notes(self) -> tuple[str, ...]:
        """Sentences on what was mended."""
        cut = f"the end of {self._name} is missing or damaged; only the parts before it are read"
        return (*((cut,) if self._is_cut else ()), *self._of_markup())

    def _of_markup(self) -> tuple[str, ...]:
        if not self.mended:
            return ()
        parts = ", ".join(self.mended[:_NAMED]) + ", ..." * (len(self.mended) > _NAMED)
        return (f"the markup of {self._name} is damaged in {parts}; a piece of it may be missing",)


def parsed(data: bytes) -> tuple[Any, bool]:
    """The root of XML, without entities of its own and without files from elsewhere.

    Returns:
        The root, and whether it isn't right and had to be mended.

    Raises:
        ValueError: nothing of it is XML.
        MemoryError: as `check_whole`.
        RecursionError: as `check_whole`.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=True
    )
    root = etree.fromstring(data, parser) if data.strip() else None
    check_whole(parser)
    if root is None:
        raise ValueError("it isn't XML")
    for entity in list(root.iter(etree.Entity)):
        _as_text(entity)
    return root, len(parser.error_log) > 0


def check_whole(parser: Any) -> None:
    """That a parser which goes on after errors has come to the end.

    Raises:
        MemoryError: it had no memory left.
        RecursionError: what is nested too deeply is missing.
    """
    from lxml import etree

    for error in parser.error_log:
        if error.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError
        if error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            raise RecursionError("it is nested too deeply")


def _as_text(entity: Any) -> None:
    """Puts what stands in the file in an entity's place: what it means isn't known."""
    text = f"{entity.text}{entity.tail or ''}"
    parent, before = entity.getparent(), entity.getprevious()
    entity.tail = None
    parent.remove(entity)
    if before is None:
        parent.text = (parent.text or "") + text
    else:
        before.tail = (before.tail or "") + text


def resolved(folder: str, reference: str) -> str:
    """A part's path in its archive.

    Args:
        folder: of the part that refers to it; "" for the archive's own.
        reference: a relative or absolute path, percent-encoded, with a fragment or without.
    """
    path = unquote(reference.partition("#")[0].partition("?")[0]).replace("\\", "/")
    joined = path if path.startswith("/") else posixpath.join(folder, path)
    parts: list[str] = []
    for part in joined.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _plain(path: str) -> str:
    """How names are compared: packages are made on systems of different habits."""
    return unicodedata.normalize("NFC", path.replace("\\", "/").lstrip("/")).casefold()
