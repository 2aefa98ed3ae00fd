"""What a card measures. No torch here: the command line reads this before loading torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.training.books import BOOKS

PARTS = ("verify", "recall", "loss", "speed")


@dataclass(frozen=True)
class CardOptions:
    """What to measure of an artifact; short enough for a model of 135M parameters on two cores.

    Args:
        parts: some of `PARTS`; those that were measured before are shown all the same.
        model: the checkpoint; None takes the one that the manifest names.
        data: texts that its scorer wasn't trained on; by default what the package's books leave.
        methods: of the checkpoint, to compare with, such as `full`; none needs no checkpoint.
        lengths: of the prompts, in tokens.
        samples: texts of each length.
        facts: planted in each.
        tokens: of each text that the loss is measured on.
        documents: how many such texts.
        bin_length: tokens averaged into one loss.
        threads: of the artifact's engine.
    """

    parts: Sequence[str] = PARTS
    model: str | None = None
    data: Sequence[Path] = (BOOKS,)
    methods: Sequence[str] = ("full", "streaming")
    lengths: Sequence[int] = (4000, 7500, 16000)
    samples: int = 2
    facts: int = 8
    tokens: int = 8192
    documents: int = 1
    bin_length: int = 1024
    threads: int = 2

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in PARTS:
                raise EdgeInfiniteError(
                    f"a card has no part {part!r}; choose from {', '.join(PARTS)}"
                )
