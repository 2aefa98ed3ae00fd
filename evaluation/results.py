"""Rows are written as soon as they are measured, so that an interrupted run can resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.processes import ALONE, Share
from edgeinfinite.files import check_writable
from edgeinfinite.rows_file import write_rows

Row = dict[str, Any]


class Results:
    """The rows of one run, also in a file if one is given.

    Each of several processes writes its own file beside it, `FILE.part0` and so on, which `merge`
    joins. Any number of processes can resume from the parts of a killed run.

    Args:
        path: None keeps them in memory only. A run with the same command and options resumes from
            an existing file.
        command: such as `evaluate passkey`.
        options: what the rows depend on.
        share: this process's share of the run.

    Raises:
        EdgeInfiniteError: a file can't be written or read, or has rows of other options; or several
            processes have no file for their rows.
    """

    def __init__(
        self, path: Path | None, command: str, options: dict[str, Any], share: Share = ALONE
    ) -> None:
        check_writable(path, again=True)
        self._path, self._command, self._share = path, command, share
        self._options = json.loads(json.dumps(options, default=str))
        self._written: list[Row] = []  # the content of this process's own file
        self.rows: list[Row] = []
        if path is None:
            if share.count > 1:
                raise EdgeInfiniteError("several processes put their rows into a file; give --json")
            return
        self._own = path if share.count == 1 else _part(path, share.index)
        self.rows = self._read_all(path)
        if self._own.exists():
            self._written = self._read(self._own)

    def _read_all(self, path: Path) -> list[Row]:
        """The rows of the file and of its parts, without duplicates."""
        files = ([path] if path.exists() else []) + _parts(path)
        rows = [json.dumps(row) for file in files for row in self._read(file)]
        return [json.loads(row) for row in dict.fromkeys(rows)]

    def _read(self, path: Path) -> list[Row]:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            command, options, rows = found["command"], found.get("options"), found["rows"]
        except (ValueError, KeyError, TypeError) as error:
            raise EdgeInfiniteError(
                f"{path} isn't a file of rows; give another name to --json"
            ) from error
        if command != self._command or options != self._options:
            raise EdgeInfiniteError(
                f"{path} holds rows of another command or of other options; "
                "give another name to --json, or delete it"
            )
        return list(rows)

    def has(self, **fields: Any) -> bool:
        """Whether there is a row with these fields."""
        return any(all(row[name] == value for name, value in fields.items()) for row in self.rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Appends rows and writes the file."""
        new = list(rows)
        self.rows += new
        self._written += new
        if self._path is not None:
            write_rows(self._own, self._command, self._written, options=self._options)

    def merge(self, order: Callable[[Row], int]) -> None:
        """Joins the parts of all processes, which must have finished, into the file.

        Args:
            order: gives a row's place, so that the order is that of a single process.
        """
        if self._path is None or not (parts := _parts(self._path)):
            return
        self.rows = sorted(self._read_all(self._path), key=order)
        write_rows(self._path, self._command, self.rows, options=self._options)
        for part in parts:
            part.unlink()


def _part(path: Path, index: int) -> Path:
    return path.with_name(f"{path.name}.part{index}")


def _parts(path: Path) -> list[Path]:
    found = (file for file in path.parent.iterdir() if file.name.startswith(f"{path.name}.part"))
    return sorted(found, key=lambda file: (len(file.name), file.name))


Progress = Callable[[str, int], None]
"""Called with the name of the method and the number of new tokens read."""

Shown = Callable[[int], AbstractContextManager[Progress]]
"""Opens a display of progress for so many tokens to read."""


@contextmanager
def unseen(tokens: int) -> Iterator[Progress]:
    """Shows no progress."""
    del tokens
    yield lambda method, new: None
