"""Artifacts and sessions with recall slots by KV head: more than one cache in a layer.

Exports made them until 2026-11-28 (experiments/recall.md). Readers skip fields that they don't
know, so without this check such a file would be read as one that has a cache for each layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from edgeinfinite.errors import EdgeInfiniteError


class _Geometry(msgspec.Struct):
    caches: Any = None


class _File(msgspec.Struct):
    geometry: _Geometry


def refuse_slots_by_head(path: Path, text: bytes | str, *, session: bool = False) -> None:
    """Refuses a file whose geometry says which KV heads each cache holds.

    Args:
        path: the file.
        text: JSON of a manifest, or of a session's header.
        session: whether it is the latter.

    Raises:
        EdgeInfiniteError: it does.
        msgspec.DecodeError: there is no geometry in it.
    """
    if msgspec.json.decode(text, type=_File).geometry.caches is None:
        return
    instead = "export its artifact again and read the text anew" if session else "export it again"
    raise EdgeInfiniteError(
        f"{path} has recall slots by head (geometry.caches), which this edgeinfinite doesn't read; "
        f"{instead}"
    )
