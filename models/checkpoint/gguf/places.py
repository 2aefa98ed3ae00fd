"""What becomes of a GGUF file's tensors: which parameters they fill, in which order of numbers.

Letters: H heads, D head dimension, I inputs, O outputs, E experts, F inner width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from gguf.gguf_reader import ReaderTensor
from transformers import PretrainedConfig


@dataclass(frozen=True)
class Part:
    """The share of a parameter that one tensor fills.

    Args:
        number: of the share, from 0.
        of: how many shares there are, of one size.
        axis: of the parameter that is shared.
        in_turns: the shares' rows take turns; False: one share after the other.
    """

    number: int
    of: int = 2
    axis: int = 0
    in_turns: bool = False

    def view(self, values: torch.Tensor) -> torch.Tensor:
        """The share of a parameter's values; writing to it writes to them."""
        if self.in_turns:
            index = [slice(None)] * values.dim()
            index[self.axis] = slice(self.number, None, self.of)
            return values[tuple(index)]
        size = values.shape[self.axis] // self.of
        return values.narrow(self.axis, self.number * size, size)


@dataclass(frozen=True)
class Turn:
    """How a tensor's numbers are changed and laid out anew.

    Args:
        values: of the tensor's, which may be overwritten; may return a view.
        shape: the shape that comes of a tensor's.
    """

    values: Callable[[np.ndarray], np.ndarray]
    shape: Callable[[list[int]], list[int]]


def _flat_shape(shape: list[int]) -> list[int]:
    return [int(np.prod(shape))]


def _log_of_minus(values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # NaN and infinity are found by whoever loads the model
        return np.log(np.negative(values, out=values), out=values).reshape(-1)


FLAT = Turn(lambda values: values.reshape(-1), _flat_shape)
"""Rows of one, or of a group of channels."""

LOG_OF_MINUS = Turn(_log_of_minus, _flat_shape)
"""Mamba's A, which is below 0; transformers has log(-A)."""

TRANSPOSED = Turn(
    lambda values: values.swapaxes(-1, -2), lambda shape: [*shape[:-2], shape[-1], shape[-2]]
)
"""Experts `[E, O, I]`, where transformers has `[E, I, O]`."""


@dataclass(frozen=True)
class To:
    """Where a tensor of a layer goes that isn't the weight of a module as it is.

    Args:
        parameter: of the layer, its whole name.
        part: of the parameter; None: all of it.
        turn: what is done with the numbers; None: nothing.
        order: of the configuration, which of the tensor's rows each of the parameter's is; None:
            they are in order.
        axis: 1: the same of columns.
        offset: of a norm, whether the file's are transformers' plus one where the others are.
        each: the tensor's first axis has so many parameters, `{}` in the name is the number of
            each; 0: it is one.
    """

    parameter: str
    part: Part | None = None
    turn: Turn | None = None
    order: Callable[[PretrainedConfig], np.ndarray] | None = None
    axis: int = 0
    offset: bool = True
    each: int = 0


@dataclass(frozen=True)
class Place:
    """What becomes of a tensor.

    Args:
        parameter: of the model.
        heads: of a tensor whose rows are in the order of RoPE's pairs; 0: they are in order.
        less: what is subtracted from its values.
        part: of the parameter that it fills; None: all of it.
        turn, axis: see `To`.
        order: which of the tensor's rows each of the parameter's is; None: they are in order.
        entry: of the tensor's first axis; None: all of it.
    """

    parameter: str
    heads: int = 0
    less: float = 0.0
    part: Part | None = None
    turn: Turn | None = None
    order: np.ndarray | None = None
    axis: int = 0
    entry: int | None = None

    def shape(self, tensor: ReaderTensor, wanted: Sequence[int]) -> list[int]:
        """The shape that the parameter would have, going by the tensor."""
        found = [int(size) for size in reversed(tensor.shape)]
        if self.entry is not None:
            found = found[1:] if self.entry < found[0] else []
        if self.turn is not None:
            found = self.turn.shape(found)
        if self.part is not None and self.part.axis < len(found):
            found[self.part.axis] *= self.part.of
        if found == [size for size in wanted if size != 1]:  # a gate of one output, a convolution
            return list(wanted)
        return found

    def values(self, held: np.ndarray) -> np.ndarray:
        """The parameter's values, of the tensor's, which may be overwritten; may be a view."""
        if self.heads:
            pairs = held.reshape(self.heads, -1, 2, *held.shape[1:])  # [H, D / 2, 2, ...]
            held = pairs.swapaxes(1, 2).reshape(held.shape)
        if self.turn is not None:
            held = self.turn.values(held)
        if self.order is not None:
            held = held.take(self.order, self.axis)
        return held - np.float32(self.less) if self.less else held


def places_at(
    start: str, to: To, config: PretrainedConfig, heads: int = 0, less: float = 0.0
) -> tuple[Place, ...]:
    """The places of one tensor; `start` stands before the parameter's name."""
    order = None if to.order is None else to.order(config)
    place = Place(
        f"{start}{to.parameter}",
        heads,
        less if to.offset else 0.0,
        part=to.part,
        turn=to.turn,
        order=order,
        axis=to.axis,
    )
    if not to.each:
        return (place,)
    return tuple(
        replace(place, parameter=place.parameter.format(entry), entry=entry)
        for entry in range(to.each)
    )


def whole_names(layer: Mapping[str, str | To]) -> dict[str, To]:
    """Tensors by their names with suffix; see `GgufArchitecture.layer`."""
    return {
        name if isinstance(to, To) else f"{name}.weight": (
            to if isinstance(to, To) else To(f"{to}.weight")
        )
        for name, to in layer.items()
    }
