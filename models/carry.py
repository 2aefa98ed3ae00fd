"""Policy `carry`: the window moves down, the pairs most worth keeping stay in recall slots.

The cache is `[S sinks | up to G recall slots | W + N residual]`, always without gaps. Whenever the
residual reaches W + N, its N oldest tokens become candidates beside the pairs in the slots; the
G that the scorer ranks highest stay, in the order of the text, each KV head for itself; the window
moves down behind them. Keys are turned to their new slots (`rotary.py`), no forward pass.

Letters: S sinks, G recall slots, N segment, W window, C capacity, K KV heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

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
) -> Carried:
    """Chooses the recall slots and moves the window, in one layer; every shape is fixed.

    Args:
        geometry: S, G, N, W.
        length: `[]` int64, slots in use: S + slots used so far + N + W.
        k_cache, v_cache: `[1, K, C, D]`; not changed.
        table: the layer's RoPE.
        scorer: None where G = 0.
    """
    sinks, slots, segment = geometry.sink_length, geometry.recall_slots, geometry.segment_length
    keys, values = k_cache[0], v_cache[0]
    candidates = length - sinks - geometry.window_length  # slots used so far and the N oldest
    kept = torch.clamp(candidates, max=slots)
    first = slice(sinks, sinks + slots + segment)
    recall_k, recall_v = keys[:, :0], values[:, :0]
    if scorer is not None:
        recall_k, recall_v = _choose(
            keys[:, first], values[:, first], candidates, slots, sinks, table, scorer
        )
    rows = sinks + candidates + torch.arange(geometry.window_length)
    distance = (candidates - kept).expand(geometry.window_length)
    return Carried(
        recall_k.unsqueeze(0),
        recall_v.unsqueeze(0),
        table.shift_back(keys[:, rows], distance).unsqueeze(0),
        values[:, rows].unsqueeze(0),
    )


def _choose(
    keys: torch.Tensor,
    values: torch.Tensor,
    candidates: torch.Tensor,
    slots: int,
    sinks: int,
    table: RotaryTable,
    scorer: RetentionScorer,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best G of `keys`, `values` `[K, G + N, D]`, of which the first `candidates` count."""
    places = torch.arange(keys.shape[1])
    score = scorer(table.shift_back(keys, places + sinks), values)
    # The same token twice has the same pair in the first layer, up to rounding: the newer one wins,
    # by more than rounding, so that the choice doesn't depend on how the text was fed.
    score = torch.where(places < candidates, score + TIE_BREAK * places, float("-inf"))
    chosen = score.topk(slots, dim=-1, sorted=False).indices.sort(dim=-1).values
    index = chosen.unsqueeze(-1).expand(-1, -1, keys.shape[-1])
    moved = table.shift_back(keys.gather(1, index), chosen - torch.arange(slots))
    return moved, values.gather(1, index)


def place(
    geometry: Geometry, length: int, k_cache: torch.Tensor, v_cache: torch.Tensor, new: Carried
) -> int:
    """Copies what `carry_layer` computed into the caches, in place.

    Args:
        geometry, length, k_cache, v_cache: as given to `carry_layer`.
        new: its result.

    Returns:
        The slots in use afterwards: S + kept + W.
    """
    sinks, window = geometry.sink_length, geometry.window_length
    kept = min(geometry.recall_slots, length - sinks - window)
    end = sinks + kept + window
    for cache, recall, moved in (
        (k_cache, new.recall_k, new.window_k),
        (v_cache, new.recall_v, new.window_v),
    ):
        cache[:, :, sinks : sinks + kept] = recall[:, :, :kept]
        cache[:, :, sinks + kept : end] = moved
    return end
