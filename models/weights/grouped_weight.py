"""A weight with fixed integers, from its file or from calibrated rounding.

Letters: O outputs (rows), I inputs (columns), g group, n = I / g groups in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GroupedWeight:
    """w = code * scale + level.

    Args:
        bits: per code: 4, 5, 6 or 8.
        group: inputs that share a scale.
        codes: `[O, I]` uint8, 0 .. 2 ** bits - 1.
        scales: `[O, n]` float32.
        levels: `[O, n]` float32, the weight at code 0; None if the middle code is zero, so that it
            is -2 ** (bits - 1) * scale.
    """

    bits: int
    group: int
    codes: torch.Tensor
    scales: torch.Tensor
    levels: torch.Tensor | None = None

    @property
    def symmetric(self) -> bool:
        """Whether the middle code is zero in every group."""
        return self.levels is None

    def dequantized(self) -> torch.Tensor:
        """The weight `[O, I]`, float32."""
        groups = self.codes.unflatten(1, (-1, self.group)).float()
        scales = self.scales.unsqueeze(2)
        if self.levels is None:
            return ((groups - 2.0 ** (self.bits - 1)) * scales).flatten(1)
        return (groups * scales + self.levels.unsqueeze(2)).flatten(1)

    def rows(self, order: torch.Tensor | slice) -> GroupedWeight:
        """The same weight with its rows in another order, or some of them.

        Args:
            order: int64, the source row of each row of the result; or a range of rows.
        """
        levels = None if self.levels is None else self.levels[order]
        return GroupedWeight(self.bits, self.group, self.codes[order], self.scales[order], levels)
