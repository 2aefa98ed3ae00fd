"""Rounding a weight column by column, each error made up for in the columns that follow (GPTQ).

Frantar et al. 2022, arXiv 2210.17323, in groups whose scale and zero point are chosen when their
first column comes up. Letters: O outputs, I inputs, g group, n = I / g.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.models.grouped_weight import GroupedWeight

_DAMPING = 0.01
"""Added to the diagonal, as a share of its mean."""

Grid = Callable[[torch.Tensor, WeightFormat], tuple[torch.Tensor, torch.Tensor]]
"""A group of columns `[O, g]` to its scales and zero points, both `[O]` float32."""


def round_by_inputs(
    weight: torch.Tensor, inputs: torch.Tensor, form: WeightFormat, grid: Grid
) -> GroupedWeight:
    """The codes that change the outputs least, not the weight.

    Args:
        weight: `[O, I]` float32, I a multiple of the group.
        inputs: `[I, I]`, the mean of x xᵀ over the weight's inputs.
        form: bits, group and symmetry.
        grid: chooses a group's scales and zero points.
    """
    rest = weight.detach().float().clone()
    factor = _factor(inputs)
    top = 2**form.bits - 1
    codes = torch.empty(rest.shape, dtype=torch.uint8)
    scales = torch.empty(len(rest), rest.shape[1] // form.group)
    zeros = torch.empty_like(scales)
    for group, start in enumerate(range(0, rest.shape[1], form.group)):
        end = start + form.group
        block = rest[:, start:end]
        scale, zero = grid(block, form)
        scales[:, group], zeros[:, group] = scale, zero
        errors = torch.empty_like(block)
        for column in range(form.group):
            place = start + column
            wanted = block[:, column]
            code = (wanted / scale).round_().add_(zero).clamp_(0, top)
            codes[:, place] = code.to(torch.uint8)
            error = (wanted - (code - zero) * scale) / factor[place, place]
            block[:, column:] -= torch.outer(error, factor[place, place:end])
            errors[:, column] = error
        rest[:, end:] -= errors @ factor[start:end, end:]
    levels = None if form.symmetric else -zeros * scales
    return GroupedWeight(form.bits, form.group, codes, scales, levels)


def _factor(inputs: torch.Tensor) -> torch.Tensor:
    """The upper Cholesky factor of the inverse of the damped `inputs`, `[I, I]`."""
    damped = inputs.double().clone()
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1.0  # an input that is never used
    diagonal += _DAMPING * diagonal.mean()
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True).float()
