"""Rounding a weight column by column, each error made up for in the columns that follow (GPTQ).

Frantar et al. 2022, arXiv 2210.17323, in groups whose scale and zero point are chosen when their
first column comes up, by the errors' own weights (`grids.py`). Letters: O outputs, I inputs, g
group, n = I / g.
"""

from __future__ import annotations

import torch

from edgeinfinite.export.mixing.grids import choose_grid, choose_offsets, offset_steps
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.scale_type import ScaleType
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

_DAMPING = 0.01
"""Added to the diagonal, as a share of its mean."""


def round_by_inputs(
    weight: torch.Tensor, factor: torch.Tensor, form: WeightFormat, scale_type: ScaleType
) -> GroupedWeight:
    """The codes that change the outputs least, not the weight.

    Args:
        weight: `[O, I]` float32, I a multiple of the group; left as it is.
        factor: `[I, I]`, see `inverse_factor`.
        form: bits, group, and symmetry or offsets.
        scale_type: how the back end stores scales.
    """
    rest = weight.detach().float().clone()
    size = form.group
    steps = offset_steps(rest, size, scale_type) if form.offsets else None
    codes = torch.empty(rest.shape, dtype=torch.uint8)
    scales = torch.empty(len(rest), rest.shape[1] // size)
    levels = torch.empty_like(scales)
    for group, start in enumerate(range(0, rest.shape[1], size)):
        end = start + size
        own = factor[start:end, start:end]
        block, weights = rest[:, start:end], own.diagonal().pow(-2)
        if steps is None:
            scale, zero = choose_grid(block, weights, form, scale_type)
            level = -zero * scale
        else:
            scale, offset = choose_offsets(block, weights, steps, scale_type)
            zero = torch.full_like(scale, 2.0 ** (form.bits - 1))
            level = offset * steps - zero * scale
            block = block - (offset * steps).unsqueeze(1)
        scales[:, group], levels[:, group] = scale, level
        columns, errors = _round_group(block, own, scale, zero, 2.0**form.bits - 1)
        codes[:, start:end] = columns
        rest[:, end:] -= errors @ factor[start:end, end:]
    stored = None if form.symmetric and not form.offsets else levels
    return GroupedWeight(form.bits, size, codes, scales, stored)


def inverse_factor(inputs: torch.Tensor) -> torch.Tensor:
    """The upper Cholesky factor of the inverse of the damped mean of x xᵀ, both `[I, I]`."""
    damped = inputs.double().clone()
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1.0  # an input that is never used
    diagonal += _DAMPING * diagonal.mean()
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True).float()


def _round_group(
    block: torch.Tensor, factor: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, top: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes `[O, g]` uint8 and the errors that the columns after this group make up for."""
    rest = block.T.contiguous()  # columns in a row of memory
    codes, errors = torch.empty_like(rest), torch.empty_like(rest)
    for column, wanted in enumerate(rest):
        codes[column] = (wanted / scale).round_().add_(zero).clamp_(0, top)
        moved = (codes[column] - zero) * scale
        errors[column] = (wanted - moved) / factor[column, column]
        rest[column + 1 :].addr_(factor[column, column + 1 :], errors[column], alpha=-1)
    return codes.T.to(torch.uint8), errors.T
