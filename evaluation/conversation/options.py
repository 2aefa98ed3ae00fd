"""Options of `evaluate conversation`. No torch here: the command line reads this first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import KINDS, draw_facts

STATES = ("edgeinfinite", "streaming")
"""Methods that read the whole chat into a state of fixed size."""

METHODS = (*STATES, "summary", "extract", "newest", "empty")
"""All of them; those that aren't states keep a text that fits a window."""


@dataclass(frozen=True)
class ConversationOptions:
    """What to measure.

    Args:
        methods: some of `METHODS`.
        lengths: of the chats, in tokens.
        samples: chats of each length.
        facts: told in each chat.
        kinds: kinds of facts, in alternation.
        seed: the first sample's; the others count up from it.
    """

    methods: Sequence[str] = METHODS
    lengths: Sequence[int] = (8000, 32000, 128000)
    samples: int = 12
    facts: int = 8
    kinds: Sequence[str] = KINDS
    seed: int = 0

    def __post_init__(self) -> None:
        draw_facts(self.facts, np.random.default_rng(0), self.kinds)  # refuses what can't be drawn
        if self.samples < 1:
            raise EdgeInfiniteError(f"samples is {self.samples}; give at least 1")
        if not self.methods:
            raise EdgeInfiniteError(f"no method given; choose from {', '.join(METHODS)}")
        for method in self.methods:
            if method not in METHODS:
                raise EdgeInfiniteError(
                    f"unknown method {method!r}; choose from {', '.join(METHODS)}"
                )
