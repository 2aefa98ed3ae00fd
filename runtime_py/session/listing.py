"""The session files of a folder, by what their headers say; no tensor is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from edgeinfinite.artifact.session_file import (
    HEADER_KEY,
    UNREAD,
    read_session_header,
    tensor_length,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.session.notes import notes_of

SUFFIX = ".session"
"""Usual, but any name will do: files with another one are known by what they hold."""

_LOOKED_AT = 1 << 16
"""Bytes of a file that say whether it is a session."""


@dataclass(frozen=True)
class ListedSession:
    """A session file.

    Args:
        path: the file.
        bytes: its size.
        saved: when it was written, local time.
        model: the checkpoint's name; "" where the file doesn't say.
        tokens_read: tokens in its state.
        tokens_left: tokens that it still has to read.
        document: the name of the document's file; "" without.
        title: the document's.
        error: why it can't be read; None for a sound header.
    """

    path: Path
    bytes: int
    saved: datetime
    model: str = ""
    tokens_read: int = 0
    tokens_left: int = 0
    document: str = ""
    title: str = ""
    error: str | None = None


def sessions_in(folder: Path) -> list[ListedSession]:
    """The session files of a folder, without its subfolders, by name.

    Raises:
        OSError: the folder can't be listed.
    """
    return [_listed(path) for path in sorted(folder.iterdir()) if _is_session(path)]


def _is_session(path: Path) -> bool:
    if not path.is_file() or path.name.startswith("."):
        return False
    if path.suffix == SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return f'"{HEADER_KEY}":'.encode() in file.read(_LOOKED_AT)
    except OSError:
        return False


def _listed(path: Path) -> ListedSession:
    status = path.stat()
    saved = moment(status.st_mtime)
    try:
        header, metadata = read_session_header(path)
        notes = notes_of(path, metadata)
        left = tensor_length(path, UNREAD)
    except (EdgeInfiniteError, OSError) as error:
        return ListedSession(path, status.st_size, saved, error=f"can't be read: {error}")
    document = notes.document
    return ListedSession(
        path,
        status.st_size,
        saved,
        model=notes.model,
        tokens_read=header.tokens_read,
        tokens_left=left,
        document=document.name if document else "",
        title=document.title if document else "",
    )


def moment(seconds: float) -> datetime:
    """When a file was written. A clock that was wrong then may have said any year."""
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):
        return datetime.max if seconds > 0 else datetime.min
