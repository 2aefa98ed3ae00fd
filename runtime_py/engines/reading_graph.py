"""Two graphs that share a place: one for long texts, one for all else; weights are packed once.

Both hold the packed weights, so while a long text is read the other one is closed. It is opened
again at the text's end, so that an answer doesn't wait after its first token; after a reading that
was stopped only when it is needed. A graph is opened in 0.4 s for SmolLM2-135M, as long as 700
tokens take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError

LONG = 2048
"""Tokens from which on the change of graphs pays."""


class ReadingGraph:
    """`prefill_segment`, and in its place another graph while long texts are read.

    Args:
        files: what both are opened from.
        opens: opens the graph.
        opens_reader: opens the one for long texts; None if there is none.

    Raises:
        EdgeInfiniteError: see `opens`.
    """

    def __init__(
        self,
        files: tuple[Path, ...],
        opens: Callable[[], Any],
        opens_reader: Callable[[], Any] | None,
    ) -> None:
        self._files = files
        self._seen = _identity(files)
        self._opens = opens
        self._opens_reader = opens_reader
        self._graph: Any = opens()
        self._reader: Any = None
        self._readings = 0

    @property
    def graph(self) -> Any:
        """The one for all else; opened if it was closed.

        Raises:
            EdgeInfiniteError: the files have changed, or it can't be opened any more.
        """
        if self._graph is None:
            if _identity(self._files) != self._seen:
                raise EdgeInfiniteError(
                    f"{self._files[0].parent} has changed since it was opened; open it again"
                )
            self._graph = self._opens()
        return self._graph

    @property
    def reader(self) -> Any:
        """The one for long texts while one is read, else None.

        Who keeps it beyond that has both in memory when `graph` is opened.
        """
        return self._reader

    @contextmanager
    def reading(self, tokens: int) -> Iterator[bool]:
        """Whether a text of so many tokens is read by `reader` now; for several at once."""
        if self._opens_reader is None or tokens < LONG or _identity(self._files) != self._seen:
            yield False
            return
        if self._reader is None:
            self._graph = None
            self._reader = self._opens_reader()
        self._readings += 1
        try:
            yield True
        finally:
            self._readings -= 1
            if not self._readings:
                self._reader = None
        if not self._readings:
            with suppress(EdgeInfiniteError):  # who needs it is told
                _ = self.graph


def _identity(files: tuple[Path, ...]) -> list[tuple[int, ...]] | None:
    """Tells files that were replaced; None where one is gone."""
    try:
        found = [file.stat() for file in files]
    except OSError:
        return None
    return [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
