"""Reads RoPE's angles from tables: one row of cosines and sines for every slot of the cache.

Positions are slots, so there are only C of them. In the graph the angles would be ten small
operators. XNNPACK takes only some of them, at less precision, which would split the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel


class RopeTables(nn.Module):
    """Replaces a decoder's `rotary_emb`.

    Args:
        rotary: the module that it replaces.
        capacity: C.
    """

    cosines: torch.Tensor
    sines: torch.Tensor

    def __init__(self, rotary: nn.Module, capacity: int) -> None:
        super().__init__()
        with torch.no_grad():
            cosines, sines = rotary(torch.zeros(1), torch.arange(capacity).unsqueeze(0))
        self.register_buffer("cosines", cosines[0].clone(), persistent=False)
        self.register_buffer("sines", sines[0].clone(), persistent=False)

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[Any, Any]:
        """Cosines and sines `[1, T, D]` float32 of positions `[1, T]` int64."""
        embedding = nn.functional.embedding
        return embedding(position_ids, self.cosines), embedding(position_ids, self.sines)


@contextmanager
def rope_tables(model: PreTrainedModel, capacity: int) -> Iterator[None]:
    """Inside, the model takes its angles from tables; they depend on the position alone."""
    decoder = model.get_decoder()
    original = decoder.rotary_emb
    decoder.rotary_emb = RopeTables(original, capacity)
    try:
        yield
    finally:
        decoder.rotary_emb = original
