"""Policy `carry`: the window moves down, the pairs most worth keeping stay in recall slots.

The cache is `[S sinks | up to G recall slots | W + N residual]`, always without gaps. Whenever the
residual reaches W + N, its N oldest tokens become candidates beside the pairs in the slots; they
are scored in all layers at once (`scores_of_leaving`), and the score stays with the pair. G stay:
those that rank highest and, in layers with many slots, what is newest; in the order of the text,
each KV head for itself. The window moves down behind them. Keys are turned to their new slots
(`rotary.py`), no forward pass.

Where G differs by layer, the layers' caches differ in length, but a token has one position in all
of them: the residual stands at the positions that it has in the longest cache, and in a shorter one
positions between its last recall slot and the residual stay empty; in heads that keep what is
newest, between sinks and recall slots.

Letters: S sinks, G recall slots, N segment, W window, C capacity, K KV heads, D head dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.nn.functional import embedding

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.models.recall.scorer import RetentionScorer, agreed, with_neighbours

RECENCY = 2.5e-4
"""Added to the rank for each slot nearer to the present; scores are of the order of 1. It decides
where heads don't score, and between a token that occurs twice; docs/recall.md has it measured."""

NEWEST_SHARE = 0.5
"""Of a layer's slots those beyond `LEAST_RANKED`, at most this share of all, hold what is newest.
Few pairs are asked for much later; without enough of what is new, ordinary text suffers, the more
the longer it is. Measured in docs/recall.md."""

LEAST_RANKED = 512
"""So many slots of a layer are filled by rank, if it has them; further ones only with pairs that
are worth keeping (`RetentionScorer.worth_keeping`), else with what is newest."""

_FAR_BELOW = 10.0
"""More than what `RECENCY` adds: among pairs that aren't worth keeping only their age counts."""


class Ranking(Protocol):
    """Another way to rank pairs, which looks at all of them each time."""

    def rank(self, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """`[1, K, n]` of un-rotated keys and values `[1, K, n, D]`, greater for what stays."""
        ...


@dataclass(frozen=True)
class Carried:
    """What a compression under `carry` leaves of one layer, for the host to copy into place.

    Args:
        recall_k, recall_v: `[1, K, G, D]` for slots S..S+G-1; only the first `kept` count.
        window_k, window_v: `[1, K, W, D]` for slots S+kept..S+kept+W-1.
        scores: `[1, K, G]` of the recall slots; None where no head scores.
    """

    recall_k: torch.Tensor
    recall_v: torch.Tensor
    window_k: torch.Tensor
    window_v: torch.Tensor
    scores: torch.Tensor | None = None


def scores_of_leaving(
    geometry: Geometry,
    length: Sequence[torch.Tensor] | torch.Tensor,
    k_cache: Sequence[torch.Tensor],
    v_cache: Sequence[torch.Tensor],
    tables: Sequence[RotaryTable],
    scorers: Sequence[RetentionScorer | Ranking | None],
    longest: torch.Tensor | None = None,
) -> dict[int, torch.Tensor]:
    """Scores of the N tokens that leave the window now, in all layers at once: see `agreed`.

    Layers without slots of their own have a say too.

    Args:
        geometry: S, G, N, W.
        length: `[L]` int64, slots in use.
        k_cache, v_cache: per layer `[1, K, C, D]`.
        tables, scorers: of the layers.
        longest: as in `carry_layer`.

    Returns:
        `[1, K, N]` by layer, of the layers in which heads score.
    """
    segment, window = geometry.segment_length, geometry.window_length
    scoring = {
        layer: scorer
        for layer, scorer in enumerate(scorers)
        if isinstance(scorer, RetentionScorer) and not scorer.by_age
    }
    if not scoring:
        return {}
    own = []
    for layer, scorer in scoring.items():
        rows = length[layer] - segment - window + torch.arange(segment)
        positions = rows if longest is None else rows + (longest - length[layer])
        key = tables[layer].shift_back(k_cache[layer].index_select(2, rows), positions)
        own.append(scorer(key, v_cache[layer].index_select(2, rows)))
    return dict(zip(scoring, agreed(own, list(scoring.values())), strict=True))


def keeps_scores(geometry: Geometry, layer: int, scorer: RetentionScorer | Ranking | None) -> bool:
    """Whether a layer's recall slots have scores that belong to the state."""
    scores = isinstance(scorer, RetentionScorer) and not scorer.by_age
    return scores and geometry.slots_of(layer) > 0


def carry_layer(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    table: RotaryTable,
    scorer: RetentionScorer | Ranking | None,
    *,
    layer: int = 0,
    longest: torch.Tensor | None = None,
    scores: torch.Tensor | None = None,
    leaving: torch.Tensor | None = None,
) -> Carried:
    """Chooses the recall slots and moves the window, in one layer; every shape is fixed.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + slots used so far + N + W.
        k_cache, v_cache: `[1, K, C, D]`, float32 or float16; not changed.
        table: the layer's RoPE.
        scorer: None where G = 0.
        layer: which one, where G differs by layer.
        longest: `[]` int64, slots in use in the longest cache, where G differs by layer.
        scores: `[1, K, G]` of the pairs in the slots, where heads score (`keeps_scores`).
        leaving: `[1, K, N]`, the layer's part of `scores_of_leaving`.
    """
    sinks, segment, window = geometry.sink_length, geometry.segment_length, geometry.window_length
    slots = geometry.slots_of(layer)
    candidates = length - sinks - window  # slots used so far and the N oldest
    kept = torch.clamp(candidates, max=slots)
    recall_k, recall_v = k_cache[:, :, :0], v_cache[:, :, :0]
    places = torch.arange(slots + segment)
    if longest is None:
        positions, moved_by = places + sinks, candidates - kept
    else:
        positions = places + sinks + (places >= candidates - segment) * (longest - length)
        moved_by = torch.clamp(longest - sinks - window - geometry.most_slots, min=0)
    if scorer is not None and slots:
        keys, values = (c[:, :, sinks : sinks + slots + segment] for c in (k_cache, v_cache))
        newest = _for_the_newest(slots)
        if scores is not None and leaving is not None and isinstance(scorer, RetentionScorer):
            scores = _in_places(scores, leaving, candidates)
            rank = with_neighbours(scores)
            if slots - newest > LEAST_RANKED:
                worth = _worth_keeping(rank, scorer, places, candidates - newest)
                rank = torch.where(worth, rank, scorer.worth_keeping - _FAR_BELOW)
            rank = rank + RECENCY * places
        elif isinstance(scorer, RetentionScorer):  # all heads by age
            rank = torch.zeros(keys.shape[:-1]) + RECENCY * places
        else:
            rank = scorer.rank(table.shift_back(keys, positions), values) + RECENCY * places
        # The same token twice has the same pair in the first layer, up to rounding: the newer one
        # wins, by more than float32's rounding, so that the choice doesn't depend on how the text
        # was fed. The rounding of a float16 cache can still decide between two pairs close by.
        rank = torch.where(places < candidates - newest, rank, float("inf"))
        rank = torch.where(places < candidates, rank, float("-inf"))
        chosen = rank.topk(slots, dim=-1, sorted=False).indices.sort(dim=-1).values
        distance = positions[chosen] - sinks - torch.arange(slots)
        if longest is not None and isinstance(scorer, RetentionScorer):
            # What stays because it is new moves with the window, as a longer one would.
            distance = torch.where(scorer.scoring.bool(), distance, moved_by)
        recall_k = table.shift_back(_rows(keys, chosen), distance)
        recall_v = _rows(values, chosen)
        scores = None if scores is None else scores.gather(2, chosen)
    rows = sinks + candidates + torch.arange(window)
    return Carried(
        recall_k,
        recall_v,
        table.shift_back(k_cache.index_select(2, rows), moved_by.expand(window)),
        v_cache.index_select(2, rows),
        scores,
    )


def _for_the_newest(slots: int) -> int:
    return min(int(NEWEST_SHARE * slots), max(0, slots - LEAST_RANKED))


def _worth_keeping(
    rank: torch.Tensor, scorer: RetentionScorer, places: torch.Tensor, ranked: torch.Tensor
) -> torch.Tensor:
    """`[1, K, n]`: which pairs may stay for their rank, not only for being new.

    Args:
        rank: `[1, K, n]`, age apart.
        ranked: of the first so many the `LEAST_RANKED` best are worth it in any case.
    """
    best = torch.where(places < ranked, rank + RECENCY * places, float("-inf"))
    least = best.topk(LEAST_RANKED, dim=-1).values[..., -1:]
    return (best >= least) | (rank > scorer.worth_keeping)


def _in_places(
    scores: torch.Tensor, leaving: torch.Tensor, candidates: torch.Tensor
) -> torch.Tensor:
    """`[1, K, G + N]`: the scores of the slots in use, then those of the N tokens that leave.

    What follows repeats the last one.
    """
    slots, segment = scores.shape[2], leaving.shape[2]
    places, used = torch.arange(slots + segment), candidates - segment
    new = slots + torch.clamp(places - used, max=segment - 1)
    return torch.cat((scores, leaving), 2).index_select(2, torch.where(places < used, places, new))


def _rows(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Rows `[1, K, G, D]` of `[1, K, n, D]`, each head its own `[1, K, G]`.

    A table lookup copies whole rows, and straight into what a graph returns.
    """
    _, heads, count, dim = x.shape
    flat = chosen + count * torch.arange(heads).unsqueeze(1)
    return embedding(flat, x.reshape(heads * count, dim))


def place(
    geometry: Geometry,
    length: int,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    new: Carried,
    layer: int = 0,
) -> int:
    """Copies what `carry_layer` computed into the caches, in place.

    Args:
        geometry, length, k_cache, v_cache, layer: as given to `carry_layer`.
        new: its result.

    Returns:
        The slots in use afterwards: S + kept + W.
    """
    sinks, window = geometry.sink_length, geometry.window_length
    kept = min(geometry.slots_of(layer), length - sinks - window)
    end = sinks + kept + window
    for cache, recall, moved in (
        (k_cache, new.recall_k, new.window_k),
        (v_cache, new.recall_v, new.window_v),
    ):
        cache[:, :, sinks : sinks + kept] = recall[:, :, :kept]
        cache[:, :, sinks + kept : end] = moved
    return end


def carry_caches(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: Sequence[torch.Tensor],
    v_cache: Sequence[torch.Tensor],
    tables: Sequence[RotaryTable],
    scorers: Sequence[RetentionScorer | Ranking | None],
    scores: Sequence[torch.Tensor | None],
) -> torch.Tensor:
    """One compression under `carry` in all layers, in place.

    Args:
        geometry: S, G, N, W.
        length: `[L]` int64, slots in use; not changed.
        k_cache, v_cache: per layer `[1, K, C, D]`, float32 or float16.
        tables: the layers' RoPE.
        scorers: of the layers; None where G = 0.
        scores: per layer `[1, K, G]` float32; None where no head scores.

    Returns:
        `[L]` int64, the slots in use afterwards.
    """
    longest = length.max() if geometry.varies else None
    leaving = scores_of_leaving(geometry, length, k_cache, v_cache, tables, scorers, longest)
    after = []
    layers = zip(length, k_cache, v_cache, tables, scorers, scores, strict=True)
    for layer, (used, keys, values, table, scorer, known) in enumerate(layers):
        carried = carry_layer(
            geometry,
            used,
            keys,
            values,
            table,
            scorer,
            layer=layer,
            longest=longest,
            scores=known,
            leaving=leaving.get(layer),
        )
        if known is not None and carried.scores is not None:
            known.copy_(carried.scores)
        after.append(place(geometry, int(used), keys, values, carried, layer))
    return torch.tensor(after)
