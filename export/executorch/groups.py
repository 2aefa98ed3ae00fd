"""Choosing codes, scales and offsets for XNNPACK's 4-bit weights.

XNNPACK has symmetric groups only: w = scale * code with codes of -8 .. 7 and scales in bfloat16.
Checkpoints that were quantized before often have another level in each group (GGUF's Q4_1:
w = d q + m), which symmetric groups miss: that costs the demo model 0.35 nats a token. There each
group gets an offset as well, w = scale * code + offset, which reproduces such a weight exactly up
to the rounding of its scale and its offset: 0.001 nats. A layer multiplies the offsets with the
sums of its inputs over each group.

Letters: O outputs (rows), I inputs (columns), n groups in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from edgeinfinite.export.mixing.grids import choose_offsets, offset_steps
from edgeinfinite.export.scale_type import ScaleType
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

GROUP = 32
"""The smallest that XNNPACK takes, and that of GGUF's formats."""

SCALE_TYPE = ScaleType(torch.bfloat16, signed=False)
"""How XNNPACK stores the scales of groups."""

SUM_FACTOR = 0.25
"""The sums over groups are multiplied by it, and their weights divided, so that they are as large
as the inputs, with which they are rounded on one scale. A power of 2."""

_LOWEST, _HIGHEST = -8, 7

_REACHES = (6.0, 6.5, 7.0, 7.5, 8.0, 8.5)
"""Codes tried for the largest weight of a group; above 7.5 it is clipped on one side."""

_OFFSETS_PAY = 0.25
"""Offsets are kept if they bring the squared error of a weight below this share. They do where the
checkpoint was quantized before; elsewhere they gain little, and aren't stored."""

_JUDGED_ROWS = 32

_AT_ONCE = 1 << 19
"""Weights rounded at once. A weight of 2,048 x 8,192 takes 0.16 s, whole 1.15."""

_LEAST = 1e-30
"""A scale for groups of zeros: XNNPACK wants positive, normal numbers."""


@dataclass(frozen=True)
class Groups:
    """w = codes * scales + offsets.

    Args:
        codes: `[O, I]` int8, -8 .. 7.
        scales: `[O, n]` float32, positive, with values that bfloat16 has.
        offsets: `[O, n]` float32; None for none.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    offsets: torch.Tensor | None = None

    @property
    def stored_bytes(self) -> int:
        """What it takes in the file."""
        offsets = 0 if self.offsets is None else self.offsets.numel() + 4 * len(self.offsets)
        return self.codes.numel() // 2 + 2 * self.scales.numel() + offsets

    def dequantized(self) -> torch.Tensor:
        """The weight `[O, I]` float32."""
        weight = self.codes.unflatten(1, (-1, GROUP)) * self.scales.unsqueeze(2)
        if self.offsets is not None:
            weight = weight + self.offsets.unsqueeze(2)
        return weight.flatten(1)

    def folded(self, inputs: int, first: int) -> torch.Tensor:
        """The weight `[O, I]` of `refined` codes: their other columns added to the inputs'.

        Args:
            inputs, first: I and F, see `refined`.
        """
        weight, more, *sums = self.dequantized().split(self._parts(inputs, first), dim=1)
        weight = torch.cat((weight[:, :first] + more, weight[:, first:]), dim=1)
        for offsets in sums:
            whole = offsets[:, -(inputs // GROUP) :] * SUM_FACTOR
            weight = weight + whole.repeat_interleave(GROUP, dim=1)
        return weight

    def _parts(self, inputs: int, first: int) -> list[int]:
        sums = self.codes.shape[1] - inputs - first
        return [inputs, first, *([sums] if sums else [])]


def judged_rows(weight: torch.Tensor) -> torch.Tensor:
    """The rows of a weight `[O, ...]` by which offsets are judged; of those it is all."""
    return weight[:: max(1, len(weight) // _JUDGED_ROWS)]


def choose_groups(weight: torch.Tensor) -> Groups:
    """Rounds a weight `[O, I]`, I a multiple of 32, with the least squared error."""
    groups = weight.detach().float().unflatten(1, (-1, GROUP))
    some = judged_rows(groups)
    if _error(some, _with_offsets(some)) < _OFFSETS_PAY * _error(some, _symmetric(some)):
        return _with_offsets(groups)
    return _symmetric(groups)


def symmetric_groups(weight: torch.Tensor) -> Groups:
    """The same without offsets."""
    return _symmetric(weight.detach().float().unflatten(1, (-1, GROUP)))


def stepped_groups(weight: torch.Tensor) -> Groups:
    """Rounds a weight `[O, I]` with offsets that are multiples of a step (`mixing/grids.py`)."""
    weight = weight.detach().float()
    steps, alike = offset_steps(weight, GROUP, SCALE_TYPE), torch.ones(GROUP)
    codes, scales, offsets = [], [], []
    for block in weight.split(GROUP, dim=1):
        scale, multiple = choose_offsets(block, alike, steps, SCALE_TYPE)
        offset = multiple * steps
        codes.append(_codes(block - offset.unsqueeze(1), scale.unsqueeze(1)))
        scales.append(scale)
        offsets.append(offset)
    return Groups(
        torch.cat(codes, dim=1).to(torch.int8), torch.stack(scales, 1), torch.stack(offsets, 1)
    )


def refined(first: torch.Tensor, rest: Groups, steps: torch.Tensor | None = None) -> Groups:
    """Codes for `[x, x_first, sums]` (`layers.RefinedLinear`).

    Of the first columns and of the rest; then of what the former lost; then, if the rest has
    offsets, zeros up to a full group, and the offsets. They belong to sums over each group of the
    inputs, times `SUM_FACTOR`, those of the first columns too, whose offsets are 0.

    Args:
        first: `[O, F]`, columns of a weight that get 8 bits, as two codes of 4; F may be 0.
        rest: the other columns.
        steps: `[O]`; the rest's offsets are -8 .. 7 times these.
    """
    coarse = symmetric_groups(first)
    parts = [coarse, rest, symmetric_groups(first - coarse.dequantized())]
    if rest.offsets is not None:
        assert steps is not None
        multiples = (rest.offsets / steps.unsqueeze(1)).round()
        before = first.shape[1] // GROUP
        before += padding((before + multiples.shape[1]) * GROUP)
        codes = nn.functional.pad(multiples.to(torch.int8), (before, 0))
        scales = (steps / SUM_FACTOR).unsqueeze(1).expand(-1, codes.shape[1] // GROUP)
        parts.append(Groups(codes, scales))
    return Groups(
        torch.cat([part.codes for part in parts], dim=1),
        torch.cat([part.scales for part in parts], dim=1),
    )


def padding(inputs: int) -> int:
    """Columns of zeros beside the sums of a layer's groups: all together they are full groups."""
    return -(inputs // GROUP) % GROUP


def take_over(weight: GroupedWeight) -> Groups:
    """Codes of 4 bits in groups of 32 that were chosen elsewhere, as they are.

    Scales are rounded to bfloat16, and offsets make up for what that does to a group's mean.
    """
    assert weight.bits == 4 and weight.group == GROUP
    codes = (weight.codes.float() + _LOWEST).unflatten(1, (-1, GROUP))
    # XNNPACK wants positive scales: s c is -s (-1 - c), and -s once more, which is an offset.
    turned = weight.scales < 0
    codes = torch.where(turned.unsqueeze(2), -1.0 - codes, codes)
    scales = _stored(weight.scales.abs())
    offsets = None
    if weight.levels is not None or bool(turned.any()):
        exact = weight.dequantized().unflatten(1, (-1, GROUP))
        offsets = (exact - codes * scales.unsqueeze(2)).mean(2)
    return Groups(codes.flatten(1).to(torch.int8), scales, offsets)


def _error(groups: torch.Tensor, chosen: Groups) -> float:
    return float((groups.flatten(1) - chosen.dequantized()).square().sum())


def _with_offsets(groups: torch.Tensor) -> Groups:
    """The ends of the range become the lowest and the highest code; groups `[O, n, g]`."""
    low, high = groups.aminmax(dim=2, keepdim=True)
    exact = (high - low) / (_HIGHEST - _LOWEST)
    level = low - _LOWEST * exact
    scales = _stored(exact)
    codes = _codes(groups - level, scales)
    offsets = (groups - codes * scales).mean(2)
    return Groups(codes.flatten(1).to(torch.int8), scales.squeeze(2), offsets)


def _symmetric(groups: torch.Tensor) -> Groups:
    """Of some ranges the one that loses least, group by group, its scale fitted to the codes.

    Some rows at a time, which stay in a core's cache; groups `[O, n, g]`.
    """
    rows = max(1, _AT_ONCE * len(groups) // max(1, groups.numel()))
    parts = [_symmetric_rows(some) for some in groups.split(rows)]
    return Groups(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _symmetric_rows(groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    largest = groups.abs().amax(2, keepdim=True)
    best = torch.full_like(largest, float("inf"))
    kept = torch.zeros_like(groups), torch.zeros_like(largest)
    for reach in _REACHES:
        codes = _codes(groups, _stored(largest / reach))
        power = codes.square().sum(2, keepdim=True).clamp_min(1.0)
        scales = _stored((groups * codes).sum(2, keepdim=True) / power)
        codes = _codes(groups, scales)
        error = (groups - codes * scales).square().sum(2, keepdim=True)
        better = error < best
        best = torch.where(better, error, best)
        kept = torch.where(better, codes, kept[0]), torch.where(better, scales, kept[1])
    codes, scales = kept
    return codes.flatten(1).to(torch.int8), scales.squeeze(2)


def _codes(groups: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (groups / scales).round_().clamp_(_LOWEST, _HIGHEST)


def _stored(scales: torch.Tensor) -> torch.Tensor:
    """As XNNPACK stores them."""
    return scales.clamp_min(_LEAST).bfloat16().float()
