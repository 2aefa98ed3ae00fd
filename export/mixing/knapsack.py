"""One format for every weight, so that the sum of the losses is least within a size.

That is a knapsack with one choice a weight. Along the lower convex hull of each weight's choices
(bytes, loss) the step that saves most loss a byte is taken first; what is left of the size at the
end is filled with the steps that still fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class Choice:
    """One format of one weight.

    Args:
        format: as `str(WeightFormat)`, or `float32`.
        bytes: that it takes in the file.
        loss: nats a token that it costs.
    """

    format: str
    bytes: int
    loss: float


Mix = dict[str, Choice]
"""By weight."""


def within_bytes(choices: Mapping[str, Sequence[Choice]], size: float) -> Mix:
    """The mix of least loss that takes no more than so many bytes.

    Raises:
        EdgeInfiniteError: even the smallest mix is larger.
    """
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
