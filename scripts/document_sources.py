"""Documents that others made for their tests, out of archives of repositories and packages."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edgeinfinite.runtime_py.documents.tags import BLOCKS

SUFFIXES = frozenset(("html", "htm", "xhtml", "docx", "epub", "pdf"))
_CONTAINER = "META-INF/container.xml"
_EXPECTED = re.compile(r'\("(sample-[\w.-]+\.txt)", "(\w+)", "\w+"\)')
_UNREAD = frozenset(("head", "script", "style", "noscript", "template", "title", "nav", "rt", "rp"))
_UNREAD |= frozenset(("rtc", "desc", "colgroup", "math math"))
"""What our reader leaves out, or writes in another way."""

_BREAKING = BLOCKS | frozenset(("br", "textarea", "button", "select", "input"))


@dataclass(frozen=True)
class Sample:
    """One document.

    Args:
        package: the archive that has it.
        path: in the archive.
        data: its bytes.
        text: what it says, where its makers wrote that down; None if a reference tool has to.
    """

    package: str
    path: str
    data: bytes
    text: str | None = None


def samples(folder: Path) -> Iterator[Sample]:
    """The documents in a folder's archives (`.tar.gz`)."""
    for archive in sorted(folder.glob("*.tar.gz")):
        package = archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as members:
            files = {
                member.name: (members.extractfile(member) or io.BytesIO()).read()
                for member in members
                if member.isfile()
            }
        for path, data in files.items():
            if PurePosixPath(path).suffix[1:].lower() in SUFFIXES and not _in_book(path, files):
                yield Sample(package, path, data)
        yield from _books(package, files)
        yield from _pages(package, files)
        yield from _texts(package, files)


def _in_book(path: str, files: dict[str, bytes]) -> bool:
    return any(f"{parent}/{_CONTAINER}" in files for parent in PurePosixPath(path).parents)


def _books(package: str, files: dict[str, bytes]) -> Iterator[Sample]:
    """EPUBs that lie there unpacked, as IDPF's and the W3C's do; without their pictures."""
    for path in files:
        if not path.endswith(f"/{_CONTAINER}"):
            continue
        folder = path.removesuffix(_CONTAINER)
        book = io.BytesIO()
        with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
            for name, data in files.items():
                if name.startswith(folder) and name != f"{folder}mimetype":
                    entry = zipfile.ZipInfo(name.removeprefix(folder))
                    archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        yield Sample(package, f"{folder.rstrip('/')}.epub", book.getvalue())


def _pages(package: str, files: dict[str, bytes]) -> Iterator[Sample]:
    """html5lib's tests of trees: pages, and the tree that HTML's standard makes of each."""
    for path, data in files.items():
        if "/tree-construction/" not in path or not path.endswith(".dat") or "/scripted/" in path:
            continue
        for number, test in enumerate(re.split(r"(?:\A|\n)#data\n", data.decode())[1:]):
            page, _, rest = test.partition("\n#errors")
            if "\n#document-fragment" in rest or "\n#document\n" not in rest:
                continue
            tree = rest.partition("\n#document\n")[2]
            yield Sample(package, f"{path}-{number}.html", page.encode(), _text_of_tree(tree))


def _text_of_tree(tree: str) -> str:
    """The text of html5lib's notation: a line a node, two spaces a level."""
    texts: list[str] = []
    path: list[str] = []
    for line in re.split(r"\n(?=\| )", tree.strip("\n")):
        indented = line.removeprefix("| ")
        node = indented.lstrip(" ")
        depth = (len(indented) - len(node)) // 2
        if _BREAKING.intersection(path[depth:]):
            texts.append(" ")
        del path[depth:]
        if node.startswith('"'):
            if not _UNREAD.intersection(path):
                texts.append(node[1:].removesuffix('"'))
        elif not node.startswith("<!--"):
            path.append(node.strip("<>").removeprefix("svg "))
            texts += [" "] * (path[-1] in _BREAKING)
    return "".join(texts)


def _texts(package: str, files: dict[str, bytes]) -> Iterator[Sample]:
    """charset_normalizer's texts, whose encodings its tests name."""
    for path, data in files.items():
        if not path.endswith("/tests/test_full_detection.py"):
            continue
        root = path.removesuffix("tests/test_full_detection.py")
        for name, encoding in _EXPECTED.findall(data.decode()):
            text = files[f"{root}data/{name}"]
            yield Sample(package, f"{root}data/{name}", text, text.decode(encoding))
