"""The text of one answer while it grows, cut before the first stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edgeinfinite.errors import EdgeInfiniteError


class Stream(Protocol):
    """Tokens to text, as `text_stream.TextStream` does it."""

    @property
    def holds(self) -> bool:
        """Whether the newest token ends within a character, whose text comes later."""

    def push(self, token: int) -> str:
        """The text that `token` completes, often empty."""

    def flush(self) -> str:
        """The rest, when no token follows."""


class AnswerText:
    """Text that can be shown, a piece per token.

    Text that may be the start of a stop string is held back until it can't be one any more. The
    answer ends before the stop string whose last character comes first; of several that end there,
    before the longest. How the text is split into tokens changes nothing.

    Args:
        stream: a new decoder.
        stop: stop strings.

    Attributes:
        stopped_by: the stop string that ended the answer; None while there is none.

    Raises:
        EdgeInfiniteError: a stop string is empty.
    """

    def __init__(self, stream: Stream, stop: Sequence[str] = ()) -> None:
        if not all(stop):
            raise EdgeInfiniteError("a stop string is empty; give at least one character")
        self._stream = stream
        self._stop = tuple(stop)
        self._shown: list[str] = []
        self._taken = 0
        self._held = ""
        self._pieces: list[tuple[int, int]] = []  # of held text: characters, first token
        self._tokens = 0
        self._next_piece = 0  # the first token whose text isn't out of the stream
        self.stopped_by: str | None = None

    @property
    def has_stop(self) -> bool:
        """Whether there are stop strings to look for."""
        return bool(self._stop)

    @property
    def text(self) -> str:
        """What can be shown of the answer so far; all of it after `finish`."""
        return "".join(self._shown)

    @property
    def whole_tokens(self) -> int:
        """How many of the first tokens have no character that is held back or cut off."""
        return self._pieces[0][1] if self._pieces else self._next_piece

    def push(self, token: int) -> None:
        """Adds a token; `stopped_by` says whether it completes a stop string."""
        self._tokens += 1
        self._add(self._stream.push(token))

    def finish(self) -> bool:
        """No token follows: what was held back is part of the answer, unless the last characters
        complete a stop string. Returns whether there is one.
        """
        if self.stopped_by is None:
            self._add(self._stream.flush())
        if self.stopped_by is None:
            self._show(len(self._held))
            self._next_piece = self._tokens
        return self.stopped_by is not None

    def take(self) -> str:
        """What can be shown since the last call."""
        taken, self._taken = self._taken, len(self._shown)
        return "".join(self._shown[taken:])

    def _add(self, piece: str) -> None:
        if not piece:
            return
        searched = len(self._held)
        self._held += piece
        self._pieces.append((len(piece), self._next_piece))
        self._next_piece = self._tokens - self._stream.holds
        found = self._first_stop(searched)
        if found is None:
            self._show(len(self._held) - self._open_length())
            return
        start, self.stopped_by = found
        self._show(start)
        self._held = ""

    def _first_stop(self, searched: int) -> tuple[int, str] | None:
        """Start of the stop string that ends first, in text held; none ends in `searched`."""
        found = []
        for stop in self._stop:
            start = self._held.find(stop, max(0, searched - len(stop) + 1))
            if start >= 0:
                found.append((start + len(stop), start, stop))
        return min(found)[1:] if found else None

    def _open_length(self) -> int:
        """Characters at the end of the held text that may be the start of a stop string."""
        longest = max((len(stop) for stop in self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            end = self._held[-length:]
            if any(stop.startswith(end) for stop in self._stop):
                return length
        return 0

    def _show(self, count: int) -> None:
        """Moves the first `count` held characters to what can be shown."""
        if not count:
            return
        self._shown.append(self._held[:count])
        self._held = self._held[count:]
        while self._pieces and self._pieces[0][0] <= count:
            length, _ = self._pieces.pop(0)
            count -= length
        if count:
            length, first = self._pieces[0]
            self._pieces[0] = (length - count, first)
