"""The longest context whose activations and cache fit a budget, found with few measurements."""

from __future__ import annotations

from collections.abc import Callable

from edgeinfinite.evaluation.exact_cost.case import BudgetRow

_STEP = 128
"""Contexts are multiples of this many tokens."""

_FIRST = 512
_GROWTH = 4
_CLOSE = 24
"""The longest that fits is known to one part in so many."""


def longest_context(
    method: str, budget: float, measured: Callable[[int], float | None]
) -> BudgetRow:
    """Searches between a context that fits and one that doesn't, by interpolating their peaks.

    Peaks grow nearly linearly with the context, so this needs fewer measurements than halving.

    Args:
        method: named in the row.
        budget: bytes.
        measured: the peak in bytes of a context of so many tokens; None if it took too long.
    """
    fits: tuple[int, float] = (0, 0.0)
    above: tuple[int, float] | None = None
    length = _FIRST
    while True:
        peak = measured(length)
        if peak is None:
            return BudgetRow(method, budget, fits[0], fits[1] or None, "time")
        if peak <= budget:
            fits = (length, peak)
        else:
            above = (length, peak)
        if above is not None and above[0] - fits[0] <= max(_STEP, fits[0] // _CLOSE):
            return BudgetRow(method, budget, fits[0], fits[1] or None, "memory")
        length = _next(budget, fits, above)


def _next(budget: float, fits: tuple[int, float], above: tuple[int, float] | None) -> int:
    """Where the line through what is known meets the budget, a little inside of it."""
    if above is None:
        (length, peak) = fits
        guess = min(_GROWTH * length, int(length * budget / peak)) if peak else _GROWTH * length
        return _rounded(max(guess, length + _STEP))
    slope = (above[1] - fits[1]) / (above[0] - fits[0])
    between = fits[0] + int((budget - fits[1]) / slope * 0.99)
    lowest, highest = fits[0] + _STEP, above[0] - _STEP
    return min(max(_rounded(between), lowest), highest)


def _rounded(length: int) -> int:
    return max(_STEP, length // _STEP * _STEP)
