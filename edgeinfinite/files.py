"""Text files that a user names: reading them, and writing them whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError


def read_text_file(path: Path) -> str:
    """A file's text, without a byte order mark.

    Raises:
        EdgeInfiniteError: it isn't UTF-8.
        OSError: it can't be read; its message names the file.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise EdgeInfiniteError(
            f"{path} isn't UTF-8 text (byte {error.object[error.start]:#04x} at {error.start}); "
            "convert it to UTF-8 first"
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Writes a UTF-8 file, whole or not at all.

    Raises:
        OSError: the file can't be written; an old one is left as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path | None) -> None:
    """Asks before long work whether its result can be written; None is no file at all.

    Raises:
        EdgeInfiniteError: there is no such folder, or the path is a folder itself.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise EdgeInfiniteError(f"{path}: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise EdgeInfiniteError(f"{path} is a folder; give the name of a file")
