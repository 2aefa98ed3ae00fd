"""The result of one check of an artifact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One row of `verify`.

    Args:
        check: `checksum:FILE`, `io:GRAPH`, `parity:logits`, `greedy_agreement`, ...
        passed: whether the check passed.
        value: what was measured (1 or 0 for a yes-or-no check).
        limit: what `value` was compared with; None if there is no limit.
    """

    check: str
    passed: bool
    value: float
    limit: float | None = None
