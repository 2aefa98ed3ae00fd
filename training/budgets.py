"""How many recall slots each layer gets: few heads do the recalling (DESIGN §2b).

A layer is worth what its heads pay to planted facts when these are asked for, squared, because one
head that finds a token counts for more than many that glance at it. Of that worth, G slots keep the
tokens that the scorer ranks among the best G; and since kinds of facts will come that the scorer
doesn't know, half of the worth counts as if the slots were filled at random.

Letters: L layers, K KV heads, n pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from edgeinfinite import EdgeInfiniteError
from edgeinfinite.models.scorer import RetentionScorer
from edgeinfinite.training.pairs import Pairs

_TRUSTED = 0.5
_ROOM = 1024


@dataclass(frozen=True)
class BudgetOptions:
    """What the slots are shared out for.

    Args:
        average_slots: G that the layers have on average.
        least_slots: G that every layer gets, where the average allows it.
        most_slots: G that no layer exceeds; None leaves it to the reference length.
        step: every G is a multiple of it; the segment length N to export with.
        reference_length: tokens that compete for the slots, of a text as it will be read.
    """

    average_slots: int = 1920
    least_slots: int = 256
    most_slots: int | None = None
    step: int = 128
    reference_length: int = 7000

    def __post_init__(self) -> None:
        for name in ("average_slots", "least_slots"):
            value = getattr(self, name)
            if value < 0 or value % self.step:
                raise EdgeInfiniteError(
                    f"{name.replace('_', ' ')} is {value}; give a multiple of {self.step}"
                )


def layer_budgets(
    scorers: Sequence[RetentionScorer], pairs: Pairs, options: BudgetOptions, positions: int
) -> list[int]:
    """G of every layer.

    Args:
        scorers: one for each layer.
        pairs: with planted facts; those that the scorers were fitted to will do, since half of the
            worth is counted as if they knew nothing.
        options: see there.
        positions: that the backbone was trained on; the slots leave room for sinks and window.
    """
    most = min(options.most_slots or options.reference_length, positions - _ROOM)
    most = max(most, options.average_slots)
    grid = np.arange(0, most + 1, options.step)
    worth = np.stack(
        [
            _worth(scorer, pairs, layer, grid / options.reference_length)
            for layer, scorer in enumerate(scorers)
        ]
    )
    least = min(options.least_slots, options.average_slots) // options.step
    total = options.average_slots // options.step * len(scorers)
    return [steps * options.step for steps in share_out(worth, least, total)]


def _worth(scorer: RetentionScorer, pairs: Pairs, layer: int, shares: np.ndarray) -> np.ndarray:
    """What is kept when each share of the text's tokens finds a slot."""
    key, value = pairs.inputs[layer].float().chunk(2, dim=-1)
    score = scorer(key, value)
    weight = pairs.paid["largest"][layer].exp().square()
    kept = np.zeros(len(shares))
    for text in pairs.text.unique():
        planted, others = (
            (pairs.text == text) & which for which in (pairs.planted, ~pairs.planted)
        )
        if not planted.any() or not others.any():
            continue
        for head in range(score.shape[0]):
            others_best_first = -score[head, others].sort(descending=True).values
            above = torch.searchsorted(others_best_first, -score[head, planted])
            needed = (above / int(others.sum())).numpy()
            paid = weight[head, planted].numpy()
            kept += ((needed[:, None] <= shares) * paid[:, None]).sum(0) * _TRUSTED
            kept += paid.sum() * np.minimum(shares, 1.0) * (1 - _TRUSTED)
    return kept


def share_out(worth: np.ndarray, least: int, total: int) -> list[int]:
    """Steps for every layer, always to where a step gains most.

    Args:
        worth: `[L, steps + 1]`, what each number of steps keeps; never falling.
        least: steps that every layer gets.
        total: steps that there are.
    """
    layers, most = worth.shape[0], worth.shape[1] - 1
    given = [min(least, most)] * layers
    left = min(total, layers * most) - sum(given)
    while left > 0:
        # A layer may gain nothing by one step and much by ten: the best gain per step counts.
        best = max(
            ((worth[layer, g + count] - worth[layer, g]) / count, -g, -layer, count)
            for layer, g in enumerate(given)
            if g < most
            for count in (_best_count(worth[layer, g : g + left + 1]),)
        )
        given[-best[2]] += best[3]
        left -= best[3]
    return given


def _best_count(worth: np.ndarray) -> int:
    gains = (worth[1:] - worth[0]) / np.arange(1, len(worth))
    return int(gains.argmax()) + 1
