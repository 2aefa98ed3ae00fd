"""Notices an answer that says one piece over and over, so that it can end there.

A small model that has nothing more to say may repeat a sentence until it reaches the limit. No
penalty prevents it: one that forbids the words makes it go round with others. The parameters are
those of vLLM's `repetition_detection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError

_LARGEST_PATTERN = 4_096
_MOST_COUNTS = 1_000


@dataclass(frozen=True)
class RepetitionDetection:
    """Ends an answer whose newest tokens are one pattern, said several times without a gap.

    By default a pattern has 16 tokens or more, so what is said three times is 48 tokens long at
    least: a run of one token counts as a pattern of 16, and a short sentence is said more often
    before it is noticed.

    Args:
        max_pattern_size: the most tokens of a pattern; 0 detects nothing.
        min_pattern_size: the fewest tokens of a pattern; 0 is as 1.
        min_count: how often in a row the pattern is said.

    Raises:
        EdgeInfiniteError: a number is out of range.
    """

    max_pattern_size: int = 128
    min_pattern_size: int = 16
    min_count: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.max_pattern_size <= _LARGEST_PATTERN:
            raise EdgeInfiniteError(
                f"max_pattern_size is {self.max_pattern_size}; give a whole "
                f"number from 0 (detects nothing) to {_LARGEST_PATTERN}"
            )
        if not self.max_pattern_size:
            return
        if not 0 <= self.min_pattern_size <= self.max_pattern_size:
            raise EdgeInfiniteError(
                f"min_pattern_size is {self.min_pattern_size}; give a whole "
                f"number from 0 to max_pattern_size, {self.max_pattern_size}"
            )
        if not 2 <= self.min_count <= _MOST_COUNTS:
            raise EdgeInfiniteError(
                f"min_count is {self.min_count}; give a whole number from 2 to {_MOST_COUNTS}"
            )

    def found(self, tokens: Sequence[int]) -> bool:
        """Whether the tokens end in a pattern that is said often enough.

        Args:
            tokens: of the answer so far; the newest is the last.
        """
        if not self.max_pattern_size:
            return False
        most = min(self.max_pattern_size, len(tokens) // self.min_count)
        return any(
            tokens[-1] == tokens[-1 - size]  # nearly always enough to say no
            and all(
                tokens[-i] == tokens[-i - size] for i in range(2, size * self.min_count - size + 1)
            )
            for size in range(max(1, self.min_pattern_size), most + 1)
        )


NO_DETECTION = RepetitionDetection(max_pattern_size=0)
