"""Reads RoPE's angles from tables: one row of cosines and sines for every slot of the cache.

Positions are slots, so there are only C of them. In the graph the angles would be ten small
operators. XNNPACK takes only some of them, at less precision, which would split the graph. Where
both halves of a head are turned by the same angles, a table has one half, as that for moving keys
(`models.recall.rotary`): the file holds them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.recall.angles import kinds_of


class RopeTables(nn.Module):
    """Replaces a decoder's `rotary_emb`.

    Args:
        rotary: the module that it replaces.
        capacity: C.
        kinds: types of layers that have angles of their own; () for one table.
    """

    def __init__(self, rotary: Any, capacity: int, kinds: Sequence[str] = ()) -> None:
        super().__init__()
        positions = torch.arange(capacity).unsqueeze(0)
        self.config = getattr(rotary, "config", None)  # some models ask for it
        self.layer_types = list(kinds)  # as transformers' own module has them: LFM3 asks for it
        self._dims: dict[str, int] = {}
        for kind in kinds or (None,):
            with torch.no_grad():
                tables = rotary(torch.zeros(1), positions, *([kind] if kind else []))
            for name, table in zip(_names(kind), tables, strict=True):
                self._dims[name] = table.shape[-1]
                self.register_buffer(name, _half_if_twice(table[0]), persistent=False)

    def forward(
        self, x: torch.Tensor, position_ids: torch.Tensor, layer_type: str | None = None
    ) -> tuple[Any, Any]:
        """Cosines and sines `[1, T, D]` float32 of positions `[1, T]` int64."""
        cosines, sines = (self._rows(name, position_ids) for name in _names(layer_type))
        return cosines, sines

    def _rows(self, name: str, position_ids: torch.Tensor) -> torch.Tensor:
        """`[1, T, D]` of a table `[C, D]` or `[C, D / 2]`."""
        if position_ids.dim() == 3:  # multimodal RoPE's rows, which are the same for text
            position_ids = position_ids[0]
        rows = nn.functional.embedding(position_ids, self.get_buffer(name))
        return torch.cat((rows, rows), dim=-1) if rows.shape[-1] < self._dims[name] else rows


def _half_if_twice(table: torch.Tensor) -> torch.Tensor:
    """The first half of columns, if the second is the same bit for bit; `[C, D]`."""
    half = table.shape[-1] // 2
    alike = torch.equal(table[:, :half], table[:, half:])
    return (table[:, :half] if alike else table).clone()


def _names(kind: str | None) -> tuple[str, str]:
    """Of the buffers for layers of a type."""
    after = f"_{kind}" if kind else ""
    return f"cosines{after}", f"sines{after}"


@contextmanager
def rope_tables(model: PreTrainedModel, capacity: int) -> Iterator[None]:
    """Inside, the model takes its angles from tables; they depend on the position alone.

    A model without RoPE (Granite 4 H) has no module for them, and Granite with windows one for each
    base of its layers' angles, beside one that it doesn't use.
    """
    decoder = model.get_decoder()
    originals = {name: getattr(decoder, name, None) for name in ("rotary_emb", "rotary_embs")}
    several: Any = originals["rotary_embs"]
    if several is not None:
        decoder.rotary_embs = nn.ModuleList(RopeTables(one, capacity) for one in several)
    elif originals["rotary_emb"] is not None:
        kinds = sorted({kind for kind in kinds_of(model) if kind is not None})
        decoder.rotary_emb = RopeTables(originals["rotary_emb"], capacity, kinds)
    try:
        yield
    finally:
        for name, original in originals.items():
            if original is not None:
                setattr(decoder, name, original)
