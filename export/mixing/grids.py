"""A group's scale and zero point, or offset, chosen by a weighted squared error.

Every candidate (some ranges narrower than the group's own, the whole numbers around each range's
zero point, or the steps around its middle) is refitted by weighted least squares: codes, then the
scale that suits them best, and once more. Letters: O outputs (rows), I inputs, g group.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.scale_type import LEAST, ScaleType

_SHRINKS = {4: (0.7, 0.76, 0.82, 0.88, 0.94, 1.0, 1.04)}
_SHRINKS_OF_MORE_BITS = (0.88, 0.94, 1.0, 1.04)
"""Ranges tried, as a share of the full range of a group's weights."""

_REFITS = 2

_OFFSETS = 8
"""An offset is -8 .. 7 steps."""

_Tried = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Weighted squared error, scale, and zero point or multiple of a step, each `[O, 1]`."""

_REACH = 2.5
"""Times the root mean square of a row's middles that its offsets reach; further ones are clipped.
"""


def choose_grid(
    block: torch.Tensor, weights: torch.Tensor, form: WeightFormat, scale_type: ScaleType
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scales and zero points of least weighted squared error.

    Args:
        block: one group of every row, `[O, g]` float32.
        weights: of the squared errors of its columns, `[g]`.
        form: bits and symmetry.
        scale_type: how scales are stored.

    Returns:
        Scales as stored and zero points as whole numbers, both `[O]` float32.
    """
    top = 2.0**form.bits - 1

    def tried() -> Iterator[_Tried]:
        for scale, zero in _candidates(block, form, signed=scale_type.signed):
            for _ in range(_REFITS):
                centred = _codes(block, scale, zero, top) - zero
                power = (weights * centred.square()).sum(1, keepdim=True)
                fitted = (weights * centred * block).sum(1, keepdim=True) / power.clamp_min(1e-30)
                scale = torch.where(fitted == 0, scale, fitted)
            scale = scale_type.stored(scale)
            moved = (_codes(block, scale, zero, top) - zero) * scale - block
            yield (weights * moved.square()).sum(1, keepdim=True), scale, zero

    return _best(tried())


def offset_steps(weight: torch.Tensor, group: int, scale_type: ScaleType) -> torch.Tensor:
    """The step of each row's offsets `[O]`, so that eight of them reach most groups' middles.

    Args:
        weight: `[O, I]` float32, I a multiple of the group.
        group: g.
        scale_type: how the back end stores steps, as it does scales.
    """
    low, high = weight.unflatten(1, (-1, group)).aminmax(dim=2)
    middles = (low + high) / 2
    steps = middles.square().mean(1).sqrt() * (_REACH / _OFFSETS)
    return scale_type.stored(steps)


def choose_offsets(
    block: torch.Tensor, weights: torch.Tensor, steps: torch.Tensor, scale_type: ScaleType
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `choose_grid`, for codes of -8 .. 7 and w = scale * code + k * step.

    Args:
        block, weights, scale_type: see there.
        steps: `[O]`, see `offset_steps`.

    Returns:
        Scales as stored and k, -8 .. 7, both `[O]` float32.
    """
    low, high = block.amin(1, keepdim=True), block.amax(1, keepdim=True)
    step = steps.unsqueeze(1)
    full = ((high - low) / 15).clamp_min(LEAST)

    def tried() -> Iterator[_Tried]:
        for shrink in _SHRINKS[4]:
            exact = ((low + high + full * shrink) / 2) / step
            for k in (exact.floor(), exact.ceil()):
                k = k.clamp(-_OFFSETS, _OFFSETS - 1)
                rest, scale = block - k * step, full * shrink
                for _ in range(_REFITS):
                    codes = (rest / scale).round_().clamp_(-8, 7)
                    power = (weights * codes.square()).sum(1, keepdim=True).clamp_min(1e-30)
                    fitted = (weights * codes * rest).sum(1, keepdim=True) / power
                    scale = torch.where(fitted <= 0, scale, fitted)
                scale = scale_type.stored(scale)
                moved = (rest / scale).round_().clamp_(-8, 7) * scale - rest
                yield (weights * moved.square()).sum(1, keepdim=True), scale, k

    return _best(tried())


def _best(tried: Iterator[_Tried]) -> tuple[torch.Tensor, torch.Tensor]:
    """Row by row what has the least error, both `[O]`."""
    best = next(tried)
    for new in tried:
        better = new[0] < best[0]
        error, scale, other = (torch.where(better, a, b) for a, b in zip(new, best, strict=True))
        best = error, scale, other
    return best[1].squeeze(1), best[2].squeeze(1)


def _codes(
    block: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, top: float
) -> torch.Tensor:
    return (block / scale).round_().add_(zero).clamp_(0, top)


def _candidates(
    block: torch.Tensor, form: WeightFormat, *, signed: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Scales and zero points `[O, 1]`."""
    top = 2**form.bits - 1
    shrinks = _SHRINKS.get(form.bits, _SHRINKS_OF_MORE_BITS)
    if form.symmetric:
        largest = block.gather(1, block.abs().argmax(1, keepdim=True))
        # The largest weight takes the end of the range that reaches further, if signs may turn.
        full = (-largest if signed else largest.abs()) / 2 ** (form.bits - 1)
        full = torch.where(full == 0, LEAST, full)
        zero = torch.full_like(full, 2.0 ** (form.bits - 1))
        yield from ((full * shrink, zero) for shrink in shrinks)
        return
    low = block.amin(1, keepdim=True).clamp_max(0)
    high = block.amax(1, keepdim=True).clamp_min(0)
    full = ((high - low) / top).clamp_min(LEAST)
    for shrink in shrinks:
        scale = full * shrink
        for exact in (-low / scale, top / 2 - (low + high) / 2 / scale):
            yield scale, exact.floor().clamp(0, top)
            yield scale, exact.ceil().clamp(0, top)
