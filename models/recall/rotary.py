"""Moving keys to other positions by rotation, since RoPE is linear (docs/develop/architecture.md).

Letters: K KV heads, n slots, D head dimension, P positions in the table.
"""

from __future__ import annotations

import torch
from torch.nn.functional import embedding
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of

_ROTATED_BY_HALVES = 1e-4
"""How exactly a model's keys must follow the rotation by halves that `shift_back` computes."""


class RotaryTable:
    """cos and sin of every position of one layer, without the scaling that some models apply.

    Args:
        cos, sin: `[P, R / 2]` float32, R <= D the rotated dimensions, whose halves have the same
            angles; None if the layer has no RoPE.
    """

    def __init__(self, cos: torch.Tensor | None, sin: torch.Tensor | None) -> None:
        self.cos, self.sin = cos, sin

    def shift_back(self, key: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Keys as they would be if their tokens stood `slots` positions earlier.

        Args:
            key: `[..., n, D]` after RoPE.
            slots: `[n]` or `[..., n]` int64, not negative.

        Returns:
            `[..., n, D]` in `key`'s dtype, computed in float32.
        """
        if self.cos is None or self.sin is None:
            return key
        half = self.cos.shape[-1]
        cos, sin = (embedding(slots, table) for table in (self.cos, self.sin))
        first, second = key[..., :half].float(), key[..., half : 2 * half].float()
        # The inverse rotation: sin(-x) = -sin(x).
        turned = [first * cos + second * sin, second * cos - first * sin]
        parts = [part.to(key.dtype) for part in turned]
        if 2 * half < key.shape[-1]:
            parts.append(key[..., 2 * half :])
        return torch.cat(parts, dim=-1)


def rotary_tables(model: PreTrainedModel, positions: int) -> list[RotaryTable]:
    """One table per layer, from the model's own rotary embedding.

    Layers that share an embedding share the table's tensors.

    Args:
        model: a RoPE decoder that `attach` supports.
        positions: P, the cache's capacity.

    Raises:
        EdgeInfiniteError: the embedding doesn't rotate halves.
    """
    decoder, facts = model.get_decoder(), architecture_of(model)
    text = model.config.get_text_config()
    types = getattr(text, "layer_types", None) or [None] * len(decoder.layers)
    by_type = facts.rotary_by_type
    made: dict[str | None, RotaryTable] = {}
    tables = []
    for layer, kind in zip(facts.layers, types, strict=True):
        if not layer.rotary:
            tables.append(RotaryTable(None, None))
            continue
        kind = kind if by_type else None
        if kind not in made:
            places = torch.arange(positions, device=model.device)
            made[kind] = _table(decoder.rotary_emb, places, *([kind] if by_type else []))
        tables.append(made[kind])
    return tables


def _table(rotary: torch.nn.Module, positions: torch.Tensor, *kind: str | None) -> RotaryTable:
    with torch.no_grad():
        of_dtype = torch.zeros(1, device=positions.device)
        cos, sin = rotary(of_dtype, positions.unsqueeze(0), *kind)
    cos, sin = cos[0].float(), sin[0].float()
    scaling = cos[0, 0]  # cos(0) = 1, so this is the model's own factor
    cos, sin = cos / scaling, sin / scaling
    half = cos.shape[-1] // 2
    if not torch.allclose(cos[:, :half], cos[:, half:], atol=_ROTATED_BY_HALVES):
        raise EdgeInfiniteError(
            "this model's RoPE turns neighbouring dimensions, not halves; use --policy reencode"
        )
    return RotaryTable(cos[:, :half].contiguous(), sin[:, :half].contiguous())
