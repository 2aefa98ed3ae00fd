"""Policy `carry`: recall slots keep the highest-ranked pairs, and the window moves down.

The cache is `[S sinks | up to G recall slots | W + N residual]`, always without gaps. When the
residual reaches W + N, its N oldest tokens become candidates along with the pairs in the recall
slots. Each KV head keeps G of them, in text order: the highest-ranked (`ranking.py`) and, in layers
with many slots, the newest. The window moves down behind them. Keys are rotated to their new
positions (`rotary.py`), without a forward pass.

If G differs by layer, the caches differ in length, but a token has the same position in all of
them. The residual has its positions of the longest cache. In a shorter cache, the unused positions
lie between the last recall slot and the residual; in streaming heads, between sinks and recall
slots.

A layer with a sliding window holds nothing but that window, in the order of the text: whatever
happens, its newest tokens, which move to new positions together with the residual.

Letters: S sinks, G recall slots, N segment, W window, C capacity, K KV heads, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import embedding

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.int8_cache.scales import Cache, as_numbers, moved
from edgeinfinite.models.recall.candidates import candidates_of
from edgeinfinite.models.recall.ranking import Ranks, Scorer, evicted_scores, rank
from edgeinfinite.models.recall.rotary import RotaryTable


@dataclass(frozen=True)
class Carried:
    """The result of a `carry` compression for one layer, for the host to copy into place.

    Args:
        recall_k, recall_v: `[1, K, G, D]` for slots S..S+G-1; only the first `kept` count.
        window_k, window_v: `[1, K, W, D]` for slots S+kept..S+kept+W-1. In a layer with a sliding
            window of A tokens `[1, K, A-1, D]` for its first slots; only those in use count. Values
            of an int8 cache stay its codes.
        scores: `[1, K, G]` of the recall slots; None if no head scores.
    """

    recall_k: torch.Tensor
    recall_v: Cache
    window_k: torch.Tensor
    window_v: Cache
    scores: torch.Tensor | None = None


def carry(
    geometry: Geometry,
    rule: RankRule,
    length: Sequence[torch.Tensor] | torch.Tensor,
    k_cache: Sequence[Cache],
    v_cache: Sequence[Cache],
    tables: Sequence[RotaryTable],
    scorers: Sequence[Scorer | None],
    scores: Sequence[torch.Tensor | None],
    longest: torch.Tensor | None = None,
) -> list[Carried]:
    """One compression of all layers. Every shape is fixed; the arguments aren't changed.

    Args:
        geometry, rule: S, G, N, W, and how pairs are ranked.
        length: `[L]` int64, slots in use.
        k_cache, v_cache: per layer `[1, K, C, D]`, float32, float16 or `ScaledCache`.
        tables: the layers' RoPE.
        scorers: one per layer; None if G = 0.
        scores: per layer `[1, K, G]` float32; None if no head scores.
        longest: `[]` int64, slots in use in the longest cache, where G differs by layer.
    """
    evicted = evicted_scores(geometry, rule, length, k_cache, v_cache, tables, scorers, longest)
    carried = []
    layers = zip(k_cache, v_cache, tables, scorers, scores, strict=True)
    for layer, (keys, values, table, scorer, known) in enumerate(layers):
        used, ranks, slots = length[layer], None, geometry.slots_of(layer)
        if geometry.slides(layer):
            moved_by = _moved_by(geometry, length[geometry.longest_layer])
            kept = geometry.kept_of(layer)
            carried.append(_slide(kept, used, keys, values, table, moved_by))
            continue
        if scorer is not None and slots:
            candidates = candidates_of(geometry, used, keys, values, layer, longest)
            ranks = rank(rule, candidates, slots, table, scorer, known, evicted.get(layer))
        carried.append(
            carry_layer(geometry, used, keys, values, table, ranks, layer=layer, longest=longest)
        )
    return carried


def _moved_by(geometry: Geometry, longest: torch.Tensor) -> torch.Tensor:
    """`[]` int64, slots that the residual moves down, in all layers.

    Args:
        geometry: S, G, W.
        longest: `[]` int64, slots in use in the longest cache.
    """
    sinks, window = geometry.sink_length, geometry.window_length
    return torch.clamp(longest - sinks - window - geometry.most_slots, min=0)


def _slide(
    kept: int,
    length: torch.Tensor,
    k_cache: Cache,
    v_cache: Cache,
    table: RotaryTable,
    moved_by: torch.Tensor,
) -> Carried:
    """The newest tokens of a layer with a sliding window, or all, if there are fewer than `kept`.

    Args:
        kept: tokens of the window but the one that reads.
        length: `[]` int64, slots in use.
        k_cache, v_cache: `[1, K, C, D]`, float32, float16 or `ScaledCache`; not changed.
        table: the layer's RoPE.
        moved_by: `[]` int64, slots that the residual moves down.
    """
    rows = torch.clamp(length - kept, min=0) + torch.arange(kept)
    none = k_cache[:, :, :0], v_cache[:, :, :0]
    key = table.shift_back(k_cache.index_select(2, rows), moved_by.expand(kept))
    return Carried(*none, key, moved(v_cache, lambda slots: slots.index_select(2, rows)))


def carry_layer(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: Cache,
    v_cache: Cache,
    table: RotaryTable,
    ranks: Ranks | None,
    *,
    layer: int = 0,
    longest: torch.Tensor | None = None,
) -> Carried:
    """Fills the recall slots by rank and moves the window, in one layer.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + slots used so far + N + W.
        k_cache, v_cache: `[1, K, C, D]`, float32, float16 or `ScaledCache`; not changed.
        table: the layer's RoPE.
        ranks: of the candidates; None if G = 0.
        layer: which one, where G differs by layer.
        longest: as in `carry`.
    """
    sinks, window, slots = geometry.sink_length, geometry.window_length, geometry.slots_of(layer)
    candidates = candidates_of(geometry, length, k_cache, v_cache, layer, longest)
    if longest is None:
        moved_by = candidates.count - torch.clamp(candidates.count, max=slots)
    else:
        moved_by = _moved_by(geometry, longest)
    recall_v: Cache
    recall_k, recall_v, scores = k_cache[:, :, :0], v_cache[:, :, :0], None
    if ranks is not None:
        chosen = ranks.rank.topk(slots, dim=-1, sorted=False).indices.sort(dim=-1).values
        distance = candidates.positions[chosen] - sinks - torch.arange(slots)
        if longest is not None and ranks.retrieval is not None:
            # Pairs kept for being new move with the window, as part of a longer window.
            distance = torch.where(ranks.retrieval, distance, moved_by)
        chosen_k, recall_v = (
            moved(cache, lambda slots: _rows(slots, chosen))
            for cache in (candidates.key, candidates.value)
        )
        recall_k = table.shift_back(as_numbers(chosen_k), distance)
        scores = None if ranks.scores is None else ranks.scores.gather(2, chosen)
    rows = sinks + candidates.count + torch.arange(window)
    return Carried(
        recall_k,
        recall_v,
        table.shift_back(k_cache.index_select(2, rows), moved_by.expand(window)),
        moved(v_cache, lambda slots: slots.index_select(2, rows)),
        scores,
    )


def _rows(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Rows `[1, K, G, D]` of `[1, K, n, D]`, chosen per head by `[1, K, G]`.

    A table lookup copies whole rows directly into a graph's output.
    """
    _, heads, count, dim = x.shape
    flat = chosen + count * torch.arange(heads).unsqueeze(1)
    return embedding(flat, x.reshape(heads * count, dim))


def place(
    geometry: Geometry,
    length: int,
    k_cache: Cache,
    v_cache: Cache,
    new: Carried,
    layer: int = 0,
) -> int:
    """Copies the result of `carry_layer` into the caches, in place.

    Args:
        geometry, length, k_cache, v_cache, layer: as given to `carry_layer`.
        new: the result of `carry_layer`.

    Returns:
        The slots in use afterwards: S + kept + W, or what a sliding window holds.
    """
    if geometry.slides(layer):
        end = min(geometry.kept_of(layer), length)
        k_cache[:, :, :end] = new.window_k[:, :, :end]
        v_cache[:, :, :end] = new.window_v[:, :, :end]
        return end
    sinks, window = geometry.sink_length, geometry.window_length
    kept = min(geometry.slots_of(layer), length - sinks - window)
    end = sinks + kept + window
    for cache, recall, residual in (
        (k_cache, new.recall_k, new.window_k),
        (v_cache, new.recall_v, new.window_v),
    ):
        cache[:, :, sinks : sinks + kept] = recall[:, :, :kept]
        cache[:, :, sinks + kept : end] = as_numbers(residual)
    return end


def carry_caches(
    geometry: Geometry,
    rule: RankRule,
    length: torch.Tensor,
    k_cache: Sequence[Cache],
    v_cache: Sequence[Cache],
    tables: Sequence[RotaryTable],
    scorers: Sequence[Scorer | None],
    scores: Sequence[torch.Tensor | None],
) -> torch.Tensor:
    """One compression of all layers, in place for caches and scores; arguments as for `carry`.

    Returns:
        `[L]` int64, the slots in use afterwards; `length` isn't changed.
    """
    longest = length[geometry.longest_layer] if geometry.varies else None
    carried = carry(geometry, rule, length, k_cache, v_cache, tables, scorers, scores, longest)
    after = []
    layers = zip(length.tolist(), k_cache, v_cache, carried, scores, strict=True)
    for layer, (used, keys, values, new, known) in enumerate(layers):
        if known is not None and new.scores is not None:
            known.copy_(new.scores)
        after.append(place(geometry, used, keys, values, new, layer))
    return torch.tensor(after)
