"""Recall slots by layer: those whose heads recall get more, at the same bytes (DESIGN §2b)."""

from __future__ import annotations

from collections.abc import Sequence

OTHERS_SHARE = 0.5
"""Slots of the other layers, of the average: there they are a longer window, which ordinary text
needs. With a third of the layers recalling, these get twice the average (docs/recall.md)."""

MOST_RECALLING = 2048
"""Slots up to which a recalling layer gets twice the average: with more of them facts are recalled
worse (docs/recall.md)."""

LEAST_RECALLING = (6, 5)
"""Slots that a recalling layer gets in any case, as a fraction of the average: ordinary text wants
it to look further back than others. At 1,920 slots text loses 0.001 nats a token more with 16/15,
and facts planted in 4,000 tokens cost 0.05 nats a token more with 19/15 (docs/recall.md)."""


def most_recalling(average: int) -> int:
    """G that a recalling layer gets at most, for G on average; no multiple of anything."""
    numerator, denominator = LEAST_RECALLING
    return max(MOST_RECALLING, average * numerator // denominator)


def slots_by_layer(
    recalling: Sequence[int], layers: int, average: int, step: int, most: int
) -> tuple[int, ...]:
    """G of every layer; all together as many as `average` in each, or fewer where `most` binds.

    Args:
        recalling: layers that recall, the most important first; what isn't divisible goes to the
            first ones.
        layers: L.
        average: G that the layers have on average, a multiple of `step`.
        step: every G is a multiple of it, the segment length N.
        most: G that no layer exceeds, for the sake of what recalling layers should have and of the
            positions that the backbone knows.
    """
    least = min(int(OTHERS_SHARE * average), most) // step
    steps = [least] * layers
    left = average // step * layers - least * layers
    # Round after round a step for each recalling layer; only when these are full, for the others.
    for group in (list(recalling), [i for i in range(layers) if i not in recalling]):
        while left and (growing := [i for i in group if (steps[i] + 1) * step <= most][:left]):
            for layer in growing:
                steps[layer] += 1
            left -= len(growing)
    return tuple(step * number for number in steps)
