"""Office files' own rules (Open Packaging Conventions): parts are found by relationships."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from edgeinfinite.runtime_py.documents.archive import Archive, resolved

ROOT = ""
"""The package itself, as the source of relationships."""

_TYPES = "[Content_Types].xml"
_OTHERS = {
    "spreadsheetml": "an Excel workbook",
    "presentationml": "a PowerPoint presentation",
    "ms-excel": "an Excel workbook",
    "ms-powerpoint": "a PowerPoint presentation",
    "visio": "a Visio drawing",
}


@dataclass(frozen=True)
class Relationship:
    """Where a part refers to.

    Args:
        id: within the part that refers.
        kind: the last word of its type, which is the same in the strict and transitional format.
        target: a path in the archive, or an address if `is_external`.
        is_external: whether it leads out of the archive.
    """

    id: str
    kind: str
    target: str
    is_external: bool


def relationships(archive: Archive, source: str) -> list[Relationship]:
    """The relationships of a part or of `ROOT`; none if they are missing or damaged."""
    folder, base = posixpath.split(source)
    path = posixpath.join(folder, "_rels", f"{base}.rels")
    if path not in archive:
        return []
    try:
        root = archive.xml(path)
    except ValueError:
        return []
    found = []
    for one in root.iter("{*}Relationship"):
        is_external = (one.get("TargetMode") or "").lower() == "external"
        target = one.get("Target") or ""
        kind = (one.get("Type") or "").rstrip("/").rpartition("/")[2]
        path = target if is_external else resolved(folder, target)
        found.append(Relationship(one.get("Id") or "", kind, path, is_external))
    return found


def main_part(archive: Archive) -> str | None:
    """The path of the part that the package is about; None if there is none."""
    for one in relationships(archive, ROOT):
        if one.kind == "officeDocument" and not one.is_external and one.target in archive:
            return one.target
    return "word/document.xml" if "word/document.xml" in archive else None


def content_type(archive: Archive, path: str) -> str:
    """What the package says that a part is; "" if nothing."""
    if _TYPES not in archive:
        return ""
    try:
        root = archive.xml(_TYPES)
    except ValueError:
        return ""
    for one in root.iter("{*}Override"):
        if resolved("", one.get("PartName") or "").casefold() == path.casefold():
            return one.get("ContentType") or ""
    suffix = path.rpartition(".")[2].casefold()
    for one in root.iter("{*}Default"):
        if (one.get("Extension") or "").casefold() == suffix:
            return one.get("ContentType") or ""
    return ""


def is_word(archive: Archive) -> bool:
    """Whether a package is a Word document, whatever its parts are called."""
    path = main_part(archive)
    if path is None:
        return False
    kind = content_type(archive, path).lower()
    return (
        "wordprocessingml" in kind
        or "ms-word" in kind
        or (not any(other in kind for other in _OTHERS) and "word/" in path.casefold())
    )


def other_kind(archive: Archive) -> str:
    """What an Office or OpenDocument file is that is no Word document; "" if it is neither."""
    path = main_part(archive)
    said = content_type(archive, path).lower() if path else ""
    for word, kind in _OTHERS.items():
        if word in said:
            return kind
    if "mimetype" in archive:
        try:
            kind = archive.read("mimetype")[:100].decode("ascii", "replace")
        except ValueError:
            return ""
        if "opendocument" in kind:
            return "an OpenDocument file"
    return ""
