"""The three standard streams: also those that were closed, and output that can't be written."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_streams() -> None:
    """Opens `/dev/null` for each standard stream that the caller closed (`2>&-`).

    The next file that is opened would get its number: what a library writes to standard error, such
    as onnxruntime's warnings, would then stand in a session file.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if null != number:  # 0, 1 and 2 are opened in this order, so the lowest one is free
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:  # the number may be another file's by now
            mode = "r" if number == 0 else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def write_out() -> None:
    """Writes what standard output has buffered, so that a failure is seen while it can be told.

    Raises:
        BrokenPipeError: its reader is gone.
        OSError: it can't be written, as on a full disk; `filename` says what.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, "standard output") from error


def output_failure() -> OSError | None:
    """Why standard output can't be written, None if it can: nothing is tried at the exit again."""
    try:
        write_out()
    except OSError as error:
        return error
    return None


def _drop(stream: TextIO) -> None:
    """Lets what is buffered go nowhere; Python would write it at the exit, and fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
