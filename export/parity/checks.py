"""The result of one check of an artifact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One row of `verify`.

    Args:
        check: `checksum:FILE`, `io:GRAPH`, `parity:logits`, `greedy_agreement`, ...
        passed: whether it is as it should be.
        value: what was measured (for a yes-or-no check 1 or 0).
        limit: what `value` was held against, None where there is none.
    """

    check: str
    passed: bool
    value: float
    limit: float | None = None
