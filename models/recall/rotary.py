"""Moving keys to other positions by rotation, since RoPE is linear (docs/develop/architecture.md).

How a model turns its keys is measured (`movement.py`); here is what follows from it.

Letters: K KV heads, n slots, D head dimension, R rotated dimensions, P positions in the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import embedding


@dataclass(frozen=True)
class Layout:
    """Which dimensions of a head turn into each other: R / 2 pairs.

    Args:
        start: the first of the R rotated dimensions, which stand side by side.
        interleaved: a pair are neighbours; else each is R / 2 dimensions from the other.
    """

    start: int = 0
    interleaved: bool = False

    def of(self, half: int) -> tuple[slice, slice]:
        """The first and the second dimensions of `half` = R / 2 pairs, as slices."""
        middle, end = self.start + half, self.start + 2 * half
        if self.interleaved:
            return slice(self.start, end, 2), slice(self.start + 1, end, 2)
        return slice(self.start, middle), slice(middle, end)

    def joined(self, first: torch.Tensor, second: torch.Tensor) -> list[torch.Tensor]:
        """Parts whose concatenation is `[..., R]`, from both dimensions of the pairs."""
        if self.interleaved:
            return [torch.cat((first.unsqueeze(-1), second.unsqueeze(-1)), dim=-1).flatten(-2)]
        return [first, second]


class RotaryTable:
    """cos and sin of every position of one layer, without the scaling that some models apply.

    Args:
        cos, sin: `[P, R / 2]` float32, R <= D; None if the layer has no RoPE. A model that turns
            the other way has the other sign of sin.
        layout: which dimensions turn into each other.
        gain: `[D]` float32, what the model multiplies each dimension with after it turned it, up
            to a factor for each pair; None for nothing.
    """

    def __init__(
        self,
        cos: torch.Tensor | None,
        sin: torch.Tensor | None,
        layout: Layout | None = None,
        gain: torch.Tensor | None = None,
    ) -> None:
        self.cos, self.sin = cos, sin
        self.layout = layout or Layout()
        self.gain = gain

    @property
    def parts(self) -> tuple[torch.Tensor | None, torch.Tensor | None, Layout, torch.Tensor | None]:
        """The arguments that make this table."""
        return self.cos, self.sin, self.layout, self.gain

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
        if self.gain is None:
            return self._turned_back(key, slots)
        return (self._turned_back(key.float() / self.gain, slots) * self.gain).to(key.dtype)

    def reach(self, key: torch.Tensor) -> torch.Tensor:
        """The largest magnitude of each channel of keys `[..., D]` float32, wherever they move."""
        if self.cos is None:
            return key.abs()
        bare = key if self.gain is None else key / self.gain
        half = self.cos.shape[-1]
        first, second = self.layout.of(half)
        length = torch.hypot(bare[..., first], bare[..., second])
        reached = bare.abs()
        reached[..., first], reached[..., second] = length, length
        return reached if self.gain is None else reached * self.gain.abs()

    def _turned_back(self, key: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """See `shift_back`, without the gain."""
        assert self.cos is not None and self.sin is not None
        start, half = self.layout.start, self.cos.shape[-1]
        cos, sin = (embedding(slots, table) for table in (self.cos, self.sin))
        first, second = (key[..., part].float() for part in self.layout.of(half))
        # The inverse rotation: sin(-x) = -sin(x).
        turned = self.layout.joined(first * cos + second * sin, second * cos - first * sin)
        parts = [part.to(key.dtype) for part in turned]
        if start:
            parts.insert(0, key[..., :start])
        if start + 2 * half < key.shape[-1]:
            parts.append(key[..., start + 2 * half :])
        return torch.cat(parts, dim=-1)
