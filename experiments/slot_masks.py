"""Attention to a part of the cached pairs, and which part a way to fill the slots would keep.

Letters: K KV heads, T cached tokens, S sinks, G recall slots, N segment, W window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule

HIDDEN_ATTENTION = "edgeinfinite-hidden-pairs"


@dataclass
class Hidden:
    """What one forward pass may attend to.

    Args:
        kept: of each layer `[K, T]` bool; None: everything.
        watch: whether to write `paid`.
        paid: of each layer `[K, T]` float32, the largest weight that a new token paid.
    """

    kept: Sequence[torch.Tensor | None]
    watch: bool = False
    paid: list[torch.Tensor] = field(default_factory=list)


def fill(
    geometry: Geometry,
    layer: int,
    tokens: int,
    rule: RankRule,
    rank: torch.Tensor | None,
    by_rank: torch.Tensor,
) -> torch.Tensor:
    """The pairs that a layer holds after so many tokens, with half a segment beside the window.

    Args:
        geometry: S, G, N, W.
        layer: its index.
        tokens: T.
        rule: recency, and how many slots hold what is newest.
        rank: `[K, T]`; None: every head keeps what is newest.
        by_rank: `[K, 1]` bool, heads that keep what ranks highest.

    Returns:
        `[K, T]` bool.
    """
    slots = geometry.slots_of(layer)
    window = tokens - geometry.window_length - geometry.segment_length // 2
    places = torch.arange(tokens)
    certain = (places < geometry.sink_length) | (places >= window)
    newest = (certain | (places >= window - slots)).expand(len(by_rank), -1)
    if rank is None or window - geometry.sink_length <= slots:
        return newest
    held = rule.newest_slots(slots)
    certain = certain | (places >= window - held)
    value = (rank + rule.recency * places).masked_fill(certain, float("-inf"))
    chosen = torch.zeros_like(newest).scatter(1, value.topk(slots - held).indices, True)
    return torch.where(by_rank, chosen | certain, newest)


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,  # noqa: ARG001  (frozen backbone)
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    hidden: Hidden = kwargs["edgeinfinite_hidden"]
    kept = hidden.kept[module.layer_idx]  # type: ignore[index]
    new, dim = query.shape[2:]
    kv_heads, total = key.shape[1:3]
    grouped = query[0].reshape(kv_heads, -1, dim).float()
    scores = grouped @ key[0].float().transpose(1, 2) * (scaling or dim**-0.5)
    scores = scores.unflatten(1, (-1, new))
    later = torch.arange(total) > (total - new + torch.arange(new)).unsqueeze(1)
    scores.masked_fill_(later, float("-inf"))
    if kept is not None:
        scores[..., : total - new].masked_fill_(~kept[:, None, None], float("-inf"))
    weights = scores.softmax(-1)
    if hidden.watch:
        hidden.paid.append(weights[..., : total - new].amax((1, 2)))
    mixed = weights.flatten(1, 2) @ value[0].float()
    return mixed.reshape(1, -1, new, dim).transpose(1, 2).to(query.dtype), None


AttentionInterface.register(HIDDEN_ATTENTION, _attention)
AttentionMaskInterface.register(HIDDEN_ATTENTION, lambda *args, **kwargs: None)
