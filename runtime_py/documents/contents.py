"""The bytes of a document's file, not more than can be read: `/dev/zero` has no end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from edgeinfinite.errors import EdgeInfiniteError, printable

MOST_BYTES = 1 << 30
"""Of a file. The process that reads documents has twice as much memory, and holds it twice."""

_BLOCK = 1 << 20


def contents_of(path: Path) -> bytes:
    """A file's bytes; a FIFO or a device is read to its end.

    Raises:
        EdgeInfiniteError: it is too large.
        OSError: it can't be read; the message names it.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise _too_large(path.name)
        return whole(file, path.name)


def whole(source: IO[bytes], name: str) -> bytes:
    """All of a stream.

    Args:
        source: to be read to its end.
        name: the document's, for the error.

    Raises:
        EdgeInfiniteError: it has more than `MOST_BYTES`.
    """
    blocks, size = [], 0
    while block := source.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        if size > MOST_BYTES:
            raise _too_large(name)
    return b"".join(blocks)


def _too_large(name: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{printable(name)} has more than {MOST_BYTES / 1e6:,.0f} MB; no document is so large, so "
        "it isn't read"
    )
