"""One format for every weight, so that the sum of the losses is least within a size.

That is a knapsack with one choice a weight. Along the lower convex hull of each weight's choices
(bytes, loss) the step that saves most loss a byte is taken first; what is left of the size at the
end is filled with the steps that still fit.

Decoding a token reads nearly all weights, and its time goes by the bytes read. A second limit on
these is kept by a price: what a byte read costs is added to the loss, as little as suffices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class Choice:
    """One format of one weight.

    Args:
        format: as `str(WeightFormat)`, or `float32`.
        bytes: that it takes in the file.
        loss: nats a token that it costs.
        read: bytes that decoding a token reads of it; more than `bytes` where the operator computes
            with more bits than are stored.
    """

    format: str
    bytes: int
    loss: float
    read: int = 0


Mix = dict[str, Choice]
"""By weight."""


_PRICES = 2.0**-50, 2.0**10
"""Nats a byte read: from one that changes nothing to one that outweighs every loss."""

_PRICE_STEPS = 40


def within_bytes(
    choices: Mapping[str, Sequence[Choice]], size: float, read: float = math.inf
) -> Mix:
    """The mix of least loss that takes no more than so many bytes, and reads no more than so many.

    Raises:
        EdgeInfiniteError: even the smallest mix is larger, or the one that reads least reads more.
    """
    best = _within_both(choices, size, read)
    # The embedding can be a quarter of all bytes. Greedy steps deal badly with one so large.
    largest = max(choices, key=lambda name: max(option.bytes for option in choices[name]))
    for option in choices[largest]:
        with suppress(EdgeInfiniteError):
            mix = _within_both({**choices, largest: [option]}, size, read)
            best = min(best, mix, key=lambda mix: sum(choice.loss for choice in mix.values()))
    return best


def bytes_read(mix: Mix) -> int:
    """Bytes of weights that decoding a token reads."""
    return sum(choice.read for choice in mix.values())


def _within_both(choices: Mapping[str, Sequence[Choice]], size: float, read: float) -> Mix:
    """The mix at the lowest price of reading that keeps the limit."""

    def at(price: float) -> Mix:
        mix = _within_bytes(_priced(choices, price), size)
        formats = {name: choice.format for name, choice in mix.items()}
        return {
            name: next(option for option in options if option.format == formats[name])
            for name, options in choices.items()
        }

    mix = at(0.0)
    if bytes_read(mix) <= read:
        return mix
    low, high = _PRICES
    mix = at(high)
    if bytes_read(mix) > read:
        raise EdgeInfiniteError(
            f"decoding a token reads {bytes_read(mix) / 1e6:,.1f} MB of weights at least, and "
            f"{read / 1e6:,.1f} MB are allowed; allow more"
        )
    for _ in range(_PRICE_STEPS):
        price = math.sqrt(low * high)
        tried = at(price)
        if bytes_read(tried) <= read:
            mix, high = tried, price
        else:
            low = price
    return mix


def _priced(choices: Mapping[str, Sequence[Choice]], price: float) -> dict[str, list[Choice]]:
    return {
        name: [replace(option, loss=option.loss + price * option.read) for option in options]
        for name, options in choices.items()
    }


def _within_bytes(choices: Mapping[str, Sequence[Choice]], size: float) -> Mix:
    mix, steps = _start(choices)
    spent = sum(choice.bytes for choice in mix.values())
    if spent > size:
        raise EdgeInfiniteError(
            f"the weights take {spent / 1e6:,.1f} MB at least, and {size / 1e6:,.1f} MB are left "
            "for them; allow a larger size"
        )
    for name, choice in steps:
        more = choice.bytes - mix[name].bytes
        if choice.loss < mix[name].loss and spent + more <= size:
            mix[name], spent = choice, spent + more
    return mix


def within_loss(choices: Mapping[str, Sequence[Choice]], loss: float) -> Mix:
    """The smallest mix whose losses sum to no more than so many nats.

    Raises:
        EdgeInfiniteError: no mix loses so little.
    """
    mix, steps = _start(choices)
    lost = sum(choice.loss for choice in mix.values())
    for name, choice in steps:
        if lost <= loss:
            return mix
        lost += choice.loss - mix[name].loss
        mix[name] = choice
    if lost > loss:
        raise EdgeInfiniteError(
            f"no mix of this back end's formats loses {loss:.4g} nats or less; the best loses "
            f"{lost:.4g}"
        )
    return mix


def _start(choices: Mapping[str, Sequence[Choice]]) -> tuple[Mix, list[tuple[str, Choice]]]:
    """The smallest mix, and the steps up from it in the order of what they save a byte."""
    hulls = {name: _hull(options) for name, options in choices.items()}
    steps = [
        ((before.loss - after.loss) / (after.bytes - before.bytes), name, after)
        for name, hull in hulls.items()
        for before, after in pairwise(hull)
    ]
    steps.sort(key=lambda step: -step[0])
    return {name: hull[0] for name, hull in hulls.items()}, [step[1:] for step in steps]


def _hull(options: Sequence[Choice]) -> list[Choice]:
    """From the smallest on, each saving less a byte than the one before."""
    hull: list[Choice] = []
    for option in sorted(options, key=lambda choice: (choice.bytes, choice.loss)):
        if hull and option.loss >= hull[-1].loss:
            continue
        while len(hull) > 1 and _slope(hull[-1], option) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(option)
    return hull


def _slope(one: Choice, other: Choice) -> float:
    return (one.loss - other.loss) / (other.bytes - one.bytes)
