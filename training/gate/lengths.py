"""How gate training cuts a text. Letters: S sinks, N segment, W window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lengths:
    """How one text is cut.

    Args:
        sinks: S, tokens that always stay.
        segment: N, tokens folded into the memory at once.
    """

    sinks: int
    segment: int

    def tokens(self, segments: int) -> int:
        """Tokens of a text with `segments` passes that read a memory, plus one to predict."""
        return self.sinks + (segments + 1) * self.segment + 1
