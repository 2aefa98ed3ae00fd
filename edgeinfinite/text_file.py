"""Reading the text files that a user gives."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite import EdgeInfiniteError


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
