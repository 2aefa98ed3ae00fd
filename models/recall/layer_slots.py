"""Recall slots by layer: layers with retrieval heads get more, with the same total bytes."""

from __future__ import annotations

from collections.abc import Sequence

OTHERS_SHARE = 0.5
"""Slots of the other layers as a share of the average. They act as a longer window, which ordinary
text needs. If a third of the layers retrieve, those get twice the average
(experiments/recall.md)."""

MOST_RETRIEVAL = 2048
"""A retrieval layer gets twice the average up to this many slots: with more, recall of facts gets
worse (experiments/recall.md)."""

LEAST_RETRIEVAL = (6, 5)
"""Slots that a retrieval layer always gets, as a fraction of the average: on ordinary text it needs
to look further back than others. At 1,920 slots, 16/15 costs text 0.001 nats per token more, and
19/15 costs facts planted in 4,000 tokens 0.05 nats per token more (experiments/recall.md)."""


def most_slots_of_retrieval(average: int) -> int:
    """The largest G of a retrieval layer, for a given average G; not rounded to a multiple."""
    numerator, denominator = LEAST_RETRIEVAL
    return max(MOST_RETRIEVAL, average * numerator // denominator)


def slots_by_layer(
    retrieval: Sequence[int], layers: int, average: int, step: int, most: int
) -> tuple[int, ...]:
    """G of every layer; their mean is `average`, or less if `most` limits it.

    Args:
        retrieval: layers with retrieval heads, the most important first; the first ones get the
            remainder.
        layers: L.
        average: G that the layers have on average, a multiple of `step`.
        step: the segment length N; every G is a multiple of it.
        most: the largest G of any layer, limited by recall quality and by the backbone's positions.
    """
    least = min(int(OTHERS_SHARE * average), most) // step
    steps = [least] * layers
    left = average // step * layers - least * layers
    # In each round every retrieval layer gets a step; the others get more only when these are full.
    for group in (list(retrieval), [i for i in range(layers) if i not in retrieval]):
        while left and (growing := [i for i in group if (steps[i] + 1) * step <= most][:left]):
            for layer in growing:
                steps[layer] += 1
            left -= len(growing)
    return tuple(step * number for number in steps)
