"""Options of `soak`. No torch here: the command line reads this first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class SoakOptions:
    """What to read and how often to look.

    Args:
        tokens: of the whole run.
        stretches: how often the state is measured and probed.
        seed: of the text's order, the sizes of its pieces, and the probes.
        text: a UTF-8 file whose paragraphs are read in random order; None for the text that
            `--calibrate default` takes.
    """

    tokens: int = 1_000_000
    stretches: int = 50
    seed: int = 0
    text: Path | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.stretches <= self.tokens:
            raise EdgeInfiniteError(
                f"{self.stretches} stretches of {self.tokens} tokens; give at least one token each"
            )

    def end_of(self, stretch: int) -> int:
        """Tokens read when stretch number `stretch`, counted from 0, ends."""
        return self.tokens * (stretch + 1) // self.stretches
