"""Recall slots by layer: layers with retrieval heads get more, at the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

OTHERS_SHARE = 0.5
"""Slots of the other layers, of the average: there they are a longer window, which ordinary text
needs. Where a third of the layers retrieve, these get twice the average (experiments/recall.md)."""

MOST_RETRIEVAL = 2048
"""Slots up to which a retrieval layer gets twice the average: with more of them facts are recalled
worse (experiments/recall.md)."""

LEAST_RETRIEVAL = (6, 5)
"""Slots that a retrieval layer gets in any case, as a fraction of the average: ordinary text wants
it to look further back than others. At 1,920 slots text loses 0.001 nats a token more with 16/15,
and facts planted in 4,000 tokens cost 0.05 nats a token more with 19/15 (experiments/recall.md)."""


def most_slots_of_retrieval(average: int) -> int:
    """G that a retrieval layer gets at most, for G on average; no multiple of anything."""
    numerator, denominator = LEAST_RETRIEVAL
    return max(MOST_RETRIEVAL, average * numerator // denominator)


def slots_by_layer(
    retrieval: Sequence[int], layers: int, average: int, step: int, most: int
) -> tuple[int, ...]:
    """G of every layer; all together as many as `average` in each, or fewer where `most` binds.

    Args:
        retrieval: layers with retrieval heads, the most important first; what isn't divisible
            goes to the first ones.
        layers: L.
        average: G that the layers have on average, a multiple of `step`.
        step: every G is a multiple of it, the segment length N.
        most: G that no layer exceeds, for the sake of what retrieval layers should have and of the
            positions that the backbone knows.
    """
    least = min(int(OTHERS_SHARE * average), most) // step
    steps = [least] * layers
    left = average // step * layers - least * layers
    # Round after round a step for each retrieval layer; only when these are full, for the others.
    for group in (list(retrieval), [i for i in range(layers) if i not in retrieval]):
        while left and (growing := [i for i in group if (steps[i] + 1) * step <= most][:left]):
            for layer in growing:
                steps[layer] += 1
            left -= len(growing)
    return tuple(step * number for number in steps)
