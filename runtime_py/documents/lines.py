"""Lines of Markdown while they are written: breaks, indentation of lists and quotations."""

from __future__ import annotations

from edgeinfinite.runtime_py.documents.budget import Budget

_WIDEST = 40
"""Of an indentation; deeper lists go no further to the right."""


class Lines:
    """What was written so far.

    Args:
        budget: counts every character.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._out: list[str] = []
        self._prefixes: list[str] = []
        self._prefix = ""
        self._outermost = ""
        self._breaks = 0
        self._is_spaced = False
        self._mark: str | None = None

    def text(self) -> str:
        return "".join(self._out)

    def break_(self, lines: int, exactly: bool = False) -> None:
        """Begins a line, or a paragraph for 2, before what is written next."""
        if self._mark is None:  # what stands in a list's item begins beside its mark
            self._breaks = lines if exactly else max(self._breaks, lines)
        self._is_spaced = False

    def push(self, prefix: str, mark: str) -> None:
        """Lines from here on have a prefix; the first has `mark` in its place, if there is one."""
        if mark:
            self._mark = (self._prefix if self._mark is None else self._mark) + mark
        self._prefixes.append(self._prefix)
        if len(self._prefix) + len(prefix) <= _WIDEST:
            self._prefix += prefix

    @property
    def has_mark(self) -> bool:
        """Whether a mark waits for something to come after it."""
        return self._mark is not None

    def pop(self) -> None:
        """Ends the last `push`; a mark that nothing came after is dropped."""
        if self._prefixes:
            self._prefix = self._prefixes.pop()
        if len(self._prefix) < len(self._outermost):
            self._outermost = self._prefix
        self._mark = None

    def write(self, text: str) -> None:
        """Writes text; spaces at its ends are kept within a line only."""
        words = text.strip(" ")
        if not words:
            self._is_spaced = self._is_spaced or bool(text)
            return
        if self._breaks or self._mark is not None or not self._out:
            self._begin_line()
            words = words.lstrip("\n") if self._out else words
        elif self._is_spaced or text[0] == " ":
            self._add(" ")
        self._add(words.replace("\n", f"\n{self._prefix}") if self._prefix else words)
        self._is_spaced = text[-1] == " "

    def _begin_line(self) -> None:
        if self._out:
            blank = f"\n{self._outermost.rstrip(' ')}" if self._breaks > 1 else ""
            self._add(f"{blank}\n")
        self._add(self._prefix if self._mark is None else self._mark)
        self._mark = None
        self._outermost = self._prefix
        self._breaks = 0
        self._is_spaced = False

    def _add(self, text: str) -> None:
        if text:
            self._budget.spend(len(text))
            self._out.append(text)
