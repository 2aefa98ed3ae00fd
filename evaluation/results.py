"""Rows are written as soon as they are measured, so that an interrupted run can resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.runtime_py.statistics import write_rows

Row = dict[str, Any]


class Results:
    """The rows of one run, also in a file if one is given.

    Args:
        path: None keeps them in memory only. A run with the same command and options resumes from
            an existing file.
        command: such as `evaluate passkey`.
        options: what the rows depend on.

    Raises:
        EdgeInfiniteError: the file can't be written or read, or has rows of other options.
    """

    def __init__(self, path: Path | None, command: str, options: dict[str, Any]) -> None:
        check_writable(path, again=True)
        self._path, self._command = path, command
        self._options = json.loads(json.dumps(options, default=str))
        self.rows: list[Row] = []
        if path is not None and path.exists():
            self.rows = self._read(path)

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
        self.rows += rows
        if self._path is not None:
            write_rows(self._path, self._command, self.rows, options=self._options)


Progress = Callable[[str, int], None]
"""Called with the name of the method and the number of new tokens read."""
