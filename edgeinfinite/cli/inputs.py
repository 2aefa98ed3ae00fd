"""What a command reads: files, and standard input as `-` or through a pipe."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError, printable
from edgeinfinite.runtime_py.documents.contents import contents_of, whole

STANDARD_INPUT = "standard input"
_DASH = Path("-")


def is_standard_input(path: Path | None) -> bool:
    """Whether a path stands for standard input; `./-` is a file of that name."""
    return path == _DASH


def read_input(path: Path) -> tuple[str, bytes]:
    """A file's name, which can be printed, and its bytes; of standard input for `-`.

    Raises:
        EdgeInfiniteError: there is no standard input, or it is too large.
        OSError: the file can't be read; the message names it.
    """
    if not is_standard_input(path):
        return printable(path.name), contents_of(path)
    if sys.stdin is None:
        raise EdgeInfiniteError("there is no standard input; give a file")
    return STANDARD_INPUT, _standard_input()


def piped_input() -> bytes:
    """What comes through a pipe or from a file; nothing where standard input is something else."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # not one of the system's
        pass
    else:
        if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
            return b""
    try:
        return _standard_input()
    except OSError:
        return b""


def _standard_input() -> bytes:
    buffer = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if buffer is None else whole(buffer, STANDARD_INPUT)
