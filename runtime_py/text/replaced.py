"""Texts found and replaced in a long text, piece by piece.

One call of `re` or `str.find` holds the interpreter until it ends: 0.3 s for 4 million characters.
Nothing else of the server runs meanwhile. Here each call looks at one piece.

What is sought are thousands of names in some vocabularies (`<unused0>` to `<unused6241>`), which
begin alike. So only their beginnings are searched for, and what follows is looked up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

_PIECE = 1 << 16
"""Characters that one call of `re` looks at."""

_SEARCHED = 1 << 20
"""Characters that one call of `str.find` looks at, some 16 times as fast."""

_BEGINNING = 3
"""Characters of a name that are searched for."""


class Names:
    """Texts to find in others.

    Args:
        names: none is empty.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._begin = min(_BEGINNING, *map(len, names)) if names else _BEGINNING
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in names:
            lengths[name[: self._begin]].add(len(name))
        self._lengths = {begins: sorted(of, reverse=True) for begins, of in lengths.items()}
        self._pattern = re.compile("|".join(map(re.escape, self._lengths)))

    def are_in(self, text: str) -> bool:
        """Whether one of the names stands in a text of any length."""
        for start in range(0, len(text), _SEARCHED):
            end = start + _SEARCHED + self._begin - 1
            if any(text.find(begins, start, end) >= 0 for begins in self._lengths):
                return next(self._found(text, start, overlapping=False), None) is not None
        return False

    def starts(self, text: str) -> Iterator[int]:
        """Where a name begins in a text of any length, in order, also within another one."""
        return (start for start, _ in self._found(text, overlapping=True))

    def replaced(self, text: str, others: Mapping[str, str]) -> str:
        """The text with another one in each name's place; of those that begin together the longest.

        Args:
            text: of any length.
            others: what stands for each name. What was put in isn't looked at again.
        """
        pieces: list[str] = []
        last = 0
        for start, name in self._found(text, overlapping=False):
            pieces += text[last:start], others[name]
            last = start + len(name)
        return "".join([*pieces, text[last:]])

    def _found(
        self, text: str, position: int = 0, *, overlapping: bool
    ) -> Iterator[tuple[int, str]]:
        while self._names and position < len(text):
            end = position + _PIECE
            found = self._pattern.search(text, position, end + self._begin - 1)
            if found is None:
                position = end
                continue
            start = found.start()
            candidates = (text[start : start + length] for length in self._lengths[found[0]])
            name = next((one for one in candidates if one in self._names), None)
            position = start + 1
            if name is not None:
                yield start, name
                if not overlapping:
                    position = start + len(name)
