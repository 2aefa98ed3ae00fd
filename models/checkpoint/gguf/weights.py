"""The integers in a GGUF file, so that an export doesn't round the weights a second time.

transformers loads float weights only. The file's tensors are matched to parameters by the values of
their rows; this also undoes transformers' reordering of the rows of Q and K in some architectures.
Letters: O outputs (rows), I inputs (columns).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gguf.gguf_reader import ReaderTensor
from gguf.quants import Q4_K
from transformers import PreTrainedModel

from edgeinfinite.models.checkpoint.gguf.loading import float_parts
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

Header = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""From blocks `[b, bytes]` to scales `[b, groups]` and levels (same shape, or None)."""

_SUPER = 256
"""Weights per block of the K formats, several groups each."""


@dataclass(frozen=True)
class _Format:
    bits: int
    group: int
    block: int
    header: Header


def read_gguf_weights(
    tensors: Sequence[ReaderTensor],
    model: PreTrainedModel,
    done: Callable[[], None] = lambda: None,
    *,
    codes: bool = True,
) -> dict[str, GroupedWeight]:
    """Reads a file's quantized matrices, by the names of the model's parameters.

    Args:
        tensors: of a `.gguf` file.
        model: the same file's, float32.
        done: called after some rows of a parameter.
        codes: False leaves them 0, for whoever only counts bytes, and the rows in the file's order;
            it is many times as fast.

    Returns:
        Tensors in Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K. Other types, and parameters
        whose rows don't match the file's, are left out. A parameter may be two tensors of one
        format, one's rows behind the other's (Granite's gates and values).
    """
    formats = _formats()
    by_shape = defaultdict(list)
    for tensor in tensors:
        if tensor.tensor_type.name in formats and len(tensor.shape) == 2:
            by_shape[int(tensor.shape[1]), int(tensor.shape[0])].append(tensor)
    found = {}

    def taken(rows: torch.Tensor) -> GroupedWeight | None:
        candidates = by_shape.get((rows.shape[0], rows.shape[1]), [])
        for tensor in candidates:
            weight = _weight(tensor, formats[tensor.tensor_type.name], rows, done, codes)
            if weight is not None:
                candidates.remove(tensor)
                return weight
        return None

    for name, parameter in model.named_parameters():
        if parameter.dim() != 2:
            continue
        weight = taken(parameter)
        if weight is None and len(parameter) % 2 == 0:
            weight = _joined([taken(half) for half in parameter.chunk(2)], codes)
        if weight is not None:
            found[name] = weight
    return found


def _joined(halves: Sequence[GroupedWeight | None], with_codes: bool) -> GroupedWeight | None:
    """Two weights, one's rows behind the other's; None if one is, or they differ in format."""
    first, second = halves
    if first is None or second is None:
        return None
    if (first.bits, first.group, first.symmetric) != (second.bits, second.group, second.symmetric):
        return None
    rows, columns = 2 * len(first.codes), first.codes.shape[1]
    codes = torch.zeros((), dtype=torch.uint8).expand(rows, columns)
    if with_codes:
        codes = torch.cat([first.codes, second.codes])
    levels = None
    if first.levels is not None and second.levels is not None:
        levels = torch.cat([first.levels, second.levels])
    scales = torch.cat([first.scales, second.scales])
    return GroupedWeight(first.bits, first.group, codes, scales, levels)


def _weight(
    tensor: ReaderTensor,
    format: _Format,
    parameter: torch.Tensor,
    done: Callable[[], None],
    with_codes: bool,
) -> GroupedWeight | None:
    """The tensor with its rows in the parameter's `[O, I]` order; None if they don't match."""
    data, kind = tensor.data, tensor.tensor_type
    wanted = parameter.detach().numpy()
    held = _holds(wanted, next(float_parts(data[:1], kind))[1])
    done()
    if not held:
        return None
    rows, columns = wanted.shape
    scales, levels = (
        None if part is None else torch.from_numpy(part.reshape(rows, -1))
        for part in format.header(data.reshape(rows * columns // format.block, -1))
    )
    assert scales is not None
    if not with_codes:
        none = torch.zeros((), dtype=torch.uint8).expand(rows, columns)
        return GroupedWeight(format.bits, format.group, none, scales, levels)
    codes = torch.empty(rows, columns, dtype=torch.uint8)
    in_order = True
    for part, values in float_parts(data, kind):
        in_order = in_order and np.array_equal(values, wanted[part])
        level = None if levels is None else levels[part]
        codes[part] = _codes(torch.from_numpy(values), format, scales[part], level)
        done()
    weight = GroupedWeight(format.bits, format.group, codes, scales, levels)
    if in_order:
        return weight
    order = _order(data, kind, wanted)
    return None if order is None else weight.rows(torch.from_numpy(order))


def _codes(
    values: torch.Tensor, format: _Format, scales: torch.Tensor, levels: torch.Tensor | None
) -> torch.Tensor:
    """The codes `[O, I]` uint8 of the values `[O, I]`, which are overwritten."""
    groups = values.unflatten(1, (-1, format.group))
    if levels is not None:
        groups -= levels.unsqueeze(2)
    groups /= torch.where(scales == 0, 1.0, scales).unsqueeze(2)
    if levels is None:
        groups += 2.0 ** (format.bits - 1)
    return values.round_().to(torch.uint8)


def _holds(values: np.ndarray, row: np.ndarray) -> bool:
    """Whether the row `[1, I]` is one of the values' `[O, I]`."""
    alike = np.flatnonzero(values[:, 0] == row[0, 0])
    return bool((values[alike] == row).all(1).any())


def _order(data: np.ndarray, kind: object, wanted: np.ndarray) -> np.ndarray | None:
    """For each wanted row of `[O, I]`, the index of the equal row of the tensor; None if one is
    missing.
    """
    values = (row for _, part in float_parts(data, kind) for row in part)
    places = {row.tobytes(): index for index, row in enumerate(values)}
    order = [places.get(np.ascontiguousarray(row).tobytes(), -1) for row in wanted]
    return None if -1 in order else np.array(order)


def _formats() -> dict[str, _Format]:
    return {
        "Q4_0": _Format(4, 32, 32, _scale),
        "Q4_1": _Format(4, 32, 32, _scale_and_level),
        "Q5_0": _Format(5, 32, 32, _scale),
        "Q5_1": _Format(5, 32, 32, _scale_and_level),
        "Q8_0": _Format(8, 32, 32, _scale),
        "Q4_K": _Format(4, 32, _SUPER, _scales_and_levels),
        "Q5_K": _Format(5, 32, _SUPER, _scales_and_levels),
        "Q6_K": _Format(6, 16, _SUPER, _scales_at_end),
    }


def _halves(blocks: np.ndarray, start: int) -> np.ndarray:
    """The float16 at this byte of each block, `[b, 1]` float32."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view(np.float16).astype(np.float32)


def _scale(blocks: np.ndarray) -> tuple[np.ndarray, None]:
    return _halves(blocks, 0), None


def _scale_and_level(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _halves(blocks, 0), _halves(blocks, 2)


def _scales_and_levels(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight groups, each with a 6-bit scale and a 6-bit minimum, in units of two float16 values."""
    scales, minimums = Q4_K.get_scale_min(np.ascontiguousarray(blocks[:, 4:16]))
    return _halves(blocks, 0) * scales, -(_halves(blocks, 2) * minimums)


def _scales_at_end(blocks: np.ndarray) -> tuple[np.ndarray, None]:
    """Sixteen groups, each with an 8-bit scale, in units of a float16; all after the codes."""
    scales = np.ascontiguousarray(blocks[:, -18:-2]).view(np.int8)
    return _halves(blocks, blocks.shape[1] - 2) * scales, None
