"""From scores to ranks: which candidates stay in the recall slots.

Letters: K KV heads, G recall slots, N segment, W window, n = G + N candidates, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch.nn import functional

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.int8_cache.scales import Cache, as_numbers
from edgeinfinite.models.recall.candidates import Candidates
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer import PairNetwork, RetentionScorer

_FAR_BELOW = 10.0
"""More than `recency` adds, so that among pairs below the keep threshold only age counts."""


class PairRanking(Protocol):
    """Another way to rank pairs, which looks at all of them at each compression."""

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """`[1, K, n]` from un-rotated keys and values `[1, K, n, D]`; the greatest stay."""
        ...


Scorer = RetentionScorer | PairRanking


@dataclass(frozen=True)
class Ranks:
    """The ranks of a layer's candidates.

    Args:
        rank: `[1, K, n]`; the greatest stay. +inf for pairs kept for being new, -inf for padding.
        scores: `[1, K, n]`, of the candidates; None if no head scores.
        retrieval: `[K, 1]` bool, true for retrieval heads. In the others, streaming heads, kept
            pairs move with the window. None if all heads keep the highest ranks.
    """

    rank: torch.Tensor
    scores: torch.Tensor | None = None
    retrieval: torch.Tensor | None = None


def keeps_scores(geometry: Geometry, layer: int, scorer: Scorer | None) -> bool:
    """Whether a layer's recall slots have scores that belong to the state."""
    scores = isinstance(scorer, RetentionScorer) and not scorer.streams
    return scores and geometry.slots_of(layer) > 0


def evicted_scores(
    geometry: Geometry,
    rule: RankRule,
    length: Sequence[torch.Tensor] | torch.Tensor,
    k_cache: Sequence[Cache],
    v_cache: Sequence[Cache],
    tables: Sequence[RotaryTable],
    scorers: Sequence[Scorer | None],
    longest: torch.Tensor | None = None,
) -> dict[int, torch.Tensor]:
    """Scores of the N tokens being evicted, in all layers at once; see `pooled_scores`.

    Layers without recall slots contribute too, but not those with a sliding window.

    Args:
        geometry, rule: S, G, N, W, and how scores are pooled.
        length: `[L]` int64, slots in use.
        k_cache, v_cache: per layer `[1, K, C, D]`.
        tables, scorers: one per layer.
        longest: as in `candidates_of`.

    Returns:
        `[1, K, N]` by layer, for layers in which heads score.
    """
    segment, window = geometry.segment_length, geometry.window_length
    scoring = {
        layer: scorer
        for layer, scorer in enumerate(scorers)
        if isinstance(scorer, RetentionScorer) and not scorer.streams and not geometry.slides(layer)
    }
    if not scoring:
        return {}
    own = []
    for layer, scorer in scoring.items():
        rows = length[layer] - segment - window + torch.arange(segment)
        positions = rows if longest is None else rows + (longest - length[layer])
        key = tables[layer].shift_back(k_cache[layer].index_select(2, rows), positions)
        own.append(scorer(key, v_cache[layer].index_select(2, rows)))
    return dict(zip(scoring, pooled_scores(own, list(scoring.values()), rule), strict=True))


def pooled_scores(
    own: Sequence[torch.Tensor], scorers: Sequence[RetentionScorer], rule: RankRule
) -> list[torch.Tensor]:
    """Mixes each head's own scores with the weighted mean over all retrieval heads.

    A head's own score says what this head needs. That a token will be asked for shows in many
    heads, each with its own noise, so `head_weights` weight them.

    Args:
        own: scores `[1, K, n]` of the same n tokens, for each layer in which heads score.
        scorers: the scorers of these layers.
        rule: how much the pooled score counts.

    Returns:
        For each of these layers `[1, K, n]`, 0 in streaming heads.
    """
    # Added pairwise, because XNNPACK concatenates at most five tensors.
    sums = [(o * s.head_weights).sum(1, keepdim=True) for o, s in zip(own, scorers, strict=True)]
    pooled = reduce(torch.add, sums) / sum(scorer.retrieval_heads for scorer in scorers)
    return [
        scorer.retrieval * ((1 - rule.pooled_share) * score + rule.pooled_share * pooled)
        for score, scorer in zip(own, scorers, strict=True)
    ]


def with_neighbours(score: torch.Tensor, rule: RankRule) -> torch.Tensor:
    """Mixes a pair's score with the best score nearby, `[1, K, n]` in text order."""
    nearby = functional.max_pool1d(score, 2 * rule.neighbours + 1, 1, rule.neighbours)
    return (1 - rule.neighbours_share) * score + rule.neighbours_share * nearby


def rank(
    rule: RankRule,
    candidates: Candidates,
    slots: int,
    table: RotaryTable,
    scorer: Scorer,
    known: torch.Tensor | None = None,
    evicted: torch.Tensor | None = None,
) -> Ranks:
    """The ranks of one layer's candidates.

    Args:
        rule: see `RankRule`.
        candidates: the layer's.
        slots: G of the layer, above 0.
        table: the layer's RoPE, for a `PairRanking`.
        scorer: the layer's.
        known: `[1, K, G]`, scores of the pairs in the slots; None if no head scores.
        evicted: `[1, K, N]`, the layer's part of `evicted_scores`.
    """
    repeats, order, count = _second_network(rule, slots, scorer), candidates.order, candidates.count
    newest, ranked = rule.newest_slots(slots), rule.ranked_slots
    if repeats is not None:
        ranked = newest = rule.beside_repeats()
    found: torch.Tensor | None = None
    if known is not None and evicted is not None and isinstance(scorer, RetentionScorer):
        found = _in_order(known, evicted, count)
        value = with_neighbours(found, rule)
        if slots - newest > ranked:
            kept = _above_threshold(rule, value, scorer, order, count - newest, ranked)
            others = scorer.keep_threshold
            if repeats is not None:
                key = table.shift_back(as_numbers(candidates.key), candidates.positions)
                others = repeats(key, as_numbers(candidates.value))
                others = others - (rule.recency - rule.repeats_recency) * order
            value = torch.where(kept, value, others - _FAR_BELOW)
        value = value + rule.recency * order
    elif isinstance(scorer, RetentionScorer):  # streaming heads only
        value = torch.zeros(candidates.key.shape[:-1]) + rule.recency * order
    else:
        key = table.shift_back(as_numbers(candidates.key), candidates.positions)
        value = scorer.rank(key, as_numbers(candidates.value)) + rule.recency * order
    # A repeated token has the same pair in the first layer, up to rounding. The newer one wins by
    # more than float32's rounding, so the choice doesn't depend on how the prompt was split. The
    # rounding of a float16 cache can still decide between two pairs close by.
    value = torch.where(order < count - newest, value, float("inf"))
    value = torch.where(order < count, value, float("-inf"))
    retrieval = scorer.retrieval.bool() if isinstance(scorer, RetentionScorer) else None
    return Ranks(value, found, retrieval)


def _second_network(rule: RankRule, slots: int, scorer: Scorer) -> PairNetwork | None:
    """What ranks the pairs that the score leaves; None where a cache has too few slots for it."""
    large = rule.needs_repeats(slots)
    return scorer.repeats if large and isinstance(scorer, RetentionScorer) else None


def _above_threshold(
    rule: RankRule,
    value: torch.Tensor,
    scorer: RetentionScorer,
    order: torch.Tensor,
    older: torch.Tensor,
    ranked: int,
) -> torch.Tensor:
    """`[1, K, n]`: which pairs may stay for their rank, not only because they are new.

    Args:
        rule: how much recency counts.
        value: `[1, K, n]`, ranks without recency.
        scorer: its threshold.
        order: see `Candidates`.
        older: number of oldest pairs, among which the best always stay for their rank.
        ranked: number of these.
    """
    best = torch.where(order < older, value + rule.recency * order, float("-inf"))
    least = best.topk(ranked, dim=-1).values[..., -1:]
    return (best >= least) | (value > scorer.keep_threshold)


def _in_order(known: torch.Tensor, evicted: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """`[1, K, n]`: scores of the recall slots in use, then of the N tokens being evicted.

    The padding repeats the last score.
    """
    slots, segment = known.shape[2], evicted.shape[2]
    order, used = torch.arange(slots + segment), count - segment
    new = slots + torch.clamp(order - used, max=segment - 1)
    rows = torch.where(order < used, order, new)
    return torch.cat((known, evicted), 2).index_select(2, rows)
