"""What one document may cost: characters that come out, bytes unpacked, parts and seconds.

All is counted while it is made, the same way for every kind of document. Memory is bounded where
documents are read in a process of their own (`isolated`).
"""

from __future__ import annotations

import time

from edgeinfinite.errors import EdgeInfiniteError

MOST_CHARACTERS = 64 << 20
"""Of the text. The Bible has 5 million."""

MOST_UNPACKED = 64 << 20
"""Bytes that come out of an archive's parts, whatever the archive says of their size."""

MOST_PARTS = 20_000
"""Chapters, pages."""

_SECONDS = 30.0
_SECONDS_A_MB = 10.0
"""A document has `_SECONDS`, and so many more for each of its megabytes."""


class TooMuch(EdgeInfiniteError):
    """A document's budget is spent; no reader goes on after it."""


class Budget:
    """The budget of one document.

    Args:
        name: the document's, for errors.
        size: its bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self.seconds = _SECONDS + _SECONDS_A_MB * size / 1e6
        self._ends = time.monotonic() + self.seconds
        self._characters = MOST_CHARACTERS
        self._unpacked = MOST_UNPACKED
        self._parts = MOST_PARTS

    def spend(self, characters: int) -> None:
        """Counts text that was made.

        Raises:
            TooMuch: it is too long, or took too long.
        """
        self._characters -= characters
        if self._characters < 0:
            most = f"{MOST_CHARACTERS / 1e6:,.0f} million characters"
            raise self._refused(f"becomes a text of more than {most}")
        self.check_time()

    def check_unpacking(self, stated: int) -> None:
        """Refuses what says of itself that it is too large, before it is unpacked.

        Raises:
            TooMuch: it is.
        """
        if stated > self._unpacked:
            raise self._refused(f"would unpack to {stated / 1e6:,.0f} MB of text")

    def unpack(self, count: int) -> None:
        """Counts bytes that came out of an archive.

        Raises:
            TooMuch: as `spend`.
        """
        self._unpacked -= count
        if self._unpacked < 0:
            raise self._refused(f"unpacks to more than {MOST_UNPACKED / 1e6:,.0f} MB of text")
        self.check_time()

    def begin_part(self) -> None:
        """Counts a chapter or page.

        Raises:
            TooMuch: as `spend`.
        """
        self._parts -= 1
        if self._parts < 0:
            raise self._refused(f"has more than {MOST_PARTS:,} parts")
        self.check_time()

    def check_time(self) -> None:
        """Ends a reading that takes too long.

        Raises:
            TooMuch: it does.
        """
        if time.monotonic() > self._ends:
            raise too_slow(self._name, self.seconds)

    def _refused(self, what: str) -> TooMuch:
        return TooMuch(f"{self._name} {what}; no document is so large, so it isn't read")


def too_slow(name: str, seconds: float) -> TooMuch:
    """The refusal of a document that takes more than its time."""
    return TooMuch(
        f"{name} takes more than {seconds:,.0f} s to be read, which no document of its size does; "
        "save it as plain text"
    )
