"""Policy `carry`: the window moves down, the pairs most worth keeping stay in recall slots.

The cache is `[S sinks | up to G recall slots | W + N residual]`, always without gaps. Whenever the
residual reaches W + N, its N oldest tokens become candidates beside the pairs in the slots; the
G that the scorer ranks highest stay, in the order of the text, each KV head for itself; the window
moves down behind them. Keys are turned to their new slots (`rotary.py`), no forward pass.

Where G differs by layer, the layers' caches differ in length, but a token has one position in all
of them: the residual stands at the positions that it has in the longest cache, and in a shorter one
positions between its last recall slot and the residual stay empty.

Letters: S sinks, G recall slots, N segment, W window, C capacity, K KV heads, D head dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import embedding

from edgeinfinite.models.geometry import Geometry
from edgeinfinite.models.rotary import RotaryTable
from edgeinfinite.models.scorer import RetentionScorer

TIE_BREAK = 5e-5
"""Added to the score for each slot nearer to the present; scores are of the order of 1."""


@dataclass(frozen=True)
class Carried:
    """What a compression under `carry` leaves of one layer, for the host to copy into place.

    Args:
        recall_k, recall_v: `[1, K, G, D]` for slots S..S+G-1; only the first `kept` count.
        window_k, window_v: `[1, K, W, D]` for slots S+kept..S+kept+W-1.
    """

    recall_k: torch.Tensor
    recall_v: torch.Tensor
    window_k: torch.Tensor
    window_v: torch.Tensor


def carry_layer(
    geometry: Geometry,
    length: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    table: RotaryTable,
    scorer: RetentionScorer | None,
    *,
    layer: int = 0,
    longest: torch.Tensor | None = None,
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
    """
    sinks, segment, window = geometry.sink_length, geometry.segment_length, geometry.window_length
    slots = geometry.slots_of(layer)
    candidates = length - sinks - window  # slots used so far and the N oldest
    kept = torch.clamp(candidates, max=slots)
    first = slice(sinks, sinks + slots + segment)
    recall_k, recall_v = k_cache[:, :, :0], v_cache[:, :, :0]
    places = torch.arange(slots + segment)
    if longest is None:
        positions, moved_by = places + sinks, candidates - kept
    else:
        positions = places + sinks + (places >= candidates - segment) * (longest - length)
        moved_by = torch.clamp(longest - sinks - window - geometry.most_slots, min=0)
    if scorer is not None and slots:
        recall_k, recall_v = _choose(
            k_cache[:, :, first],
            v_cache[:, :, first],
            candidates,
            slots,
            sinks,
            positions,
            table,
            scorer,
        )
    rows = sinks + candidates + torch.arange(window)
    distance = moved_by.expand(window)
    return Carried(
        recall_k,
        recall_v,
        table.shift_back(k_cache.index_select(2, rows), distance),
        v_cache.index_select(2, rows),
    )


def _choose(
    keys: torch.Tensor,
    values: torch.Tensor,
    candidates: torch.Tensor,
    slots: int,
    sinks: int,
    positions: torch.Tensor,
    table: RotaryTable,
    scorer: RetentionScorer,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best G of `keys`, `values` `[1, K, G + N, D]`, of which the first `candidates` count.

    `positions` `[G + N]` are those that the keys are turned to; they go to S..S+G-1.
    """
    places = torch.arange(keys.shape[2])
    score = scorer.rank(table.shift_back(keys, positions), values)
    # The same token twice has the same pair in the first layer, up to rounding: the newer one wins,
    # by more than rounding, so that the choice doesn't depend on how the text was fed.
    score = torch.where(places < candidates, score + TIE_BREAK * places, float("-inf"))
    chosen = score.topk(slots, dim=-1, sorted=False).indices.sort(dim=-1).values
    distance = positions[chosen] - sinks - torch.arange(slots)
    return table.shift_back(_rows(keys, chosen), distance), _rows(values, chosen)


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
    scorers: Sequence[RetentionScorer | None],
) -> torch.Tensor:
    """One compression under `carry` in all layers, in place.

    Args:
        geometry: S, G, N, W.
        length: `[L]` int64, slots in use; not changed.
        k_cache, v_cache: per layer `[1, K, C, D]`, float32 or float16.
        tables: the layers' RoPE.
        scorers: of the layers; None where G = 0.

    Returns:
        `[L]` int64, the slots in use afterwards.
    """
    longest = length.max() if geometry.varies else None
    after = []
    layers = zip(length, k_cache, v_cache, tables, scorers, strict=True)
    for layer, (used, keys, values, table, scorer) in enumerate(layers):
        new = carry_layer(geometry, used, keys, values, table, scorer, layer=layer, longest=longest)
        after.append(place(geometry, int(used), keys, values, new, layer))
    return torch.tensor(after)
