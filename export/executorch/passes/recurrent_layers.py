"""Prepares layers with a gated delta rule or an SSM, so that XNNPACK takes all but the operator.

ExecuTorch's own kernels compute what is left between two parts of XNNPACK's: the operator itself,
the rows that a convolution reads at its T tokens, which are pieces of memory, and log1p on one
number a head. Programs without such layers stay as they are.

Letters: T tokens, E channels, R columns of a convolution's state.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    is_constant,
    nodes_of,
    replace,
    shape_of,
    tidy,
    value_of,
)
from edgeinfinite.export.executorch.slices import TAKEN

aten = torch.ops.aten
_OF_A_LAYER = (torch.ops.llama.channelwise_gated_delta_rule.default, aten.triu.default)
"""One token's operator, and the triangle of several in chunks (`chunks.py`)."""

_OF_CONSTANTS = (
    aten.squeeze.dim,
    aten.select.int,
    aten.exp.default,
    aten.neg.default,
    aten.triu.default,
)
_CONVERSIONS = (aten.to.dtype, aten.to.device)
_LARGEST = torch.iinfo(torch.int64).max


def recurrent_layers(program: ExportedProgram) -> int:
    """Prepares them.

    Returns:
        How many there are.
    """
    found = len(list(nodes_of(program, *_OF_A_LAYER)))
    if found:
        _drop_conversions(program)
        _fold_weights(program)
        _turn_back(program)
        _spell_softplus(program)
        _take_parts(program)
    return found


def _drop_conversions(program: ExportedProgram) -> None:
    """Conversions to the type that a tensor has."""
    for node in nodes_of(program, *_CONVERSIONS):
        source: Any = node.args[0]
        if source.meta["val"].dtype == node.meta["val"].dtype:
            replace(node, source)


def _fold_weights(program: ExportedProgram) -> None:
    """Columns of kernels, -exp(A), ones and a triangle of them become constants."""
    for node in nodes_of(program, aten.ones.default):
        sizes: Any = node.args[0]
        replace(node, constant(program, _name("ones", sizes), torch.ones(sizes)))
    for node in nodes_of(program, *_OF_CONSTANTS):
        source: Any = node.args[0]
        if is_constant(program, source):
            value = node.target(value_of(program, source), *node.args[1:])
            name = _name(source.name, [_short(node), *node.args[1:]])
            replace(node, constant(program, name, value.clone()))


def _short(node: Node) -> str:
    """`tril` for `aten.tril.default`."""
    return str(node.target).split(".")[1]


def _name(of: str, parts: list[Any]) -> str:
    return "_".join((of, *map(str, parts))).replace("-", "m")


def _turn_back(program: ExportedProgram) -> None:
    """Rows that were turned into columns and back, and slices of everything, are left out.

    A slice moves before the turn that it follows, so that no more is turned than it keeps.
    """
    for node in nodes_of(program, aten.transpose.int, aten.slice.Tensor):
        source: Any = node.args[0]
        if node.target is aten.transpose.int:
            if source.target is aten.transpose.int and _axes(source) == _axes(node):
                replace(node, source.args[0])
            continue
        axis, *bounds = node.args[1:]
        if str(shape_of(node)) == str(shape_of(source)):
            replace(node, source)
        elif source.target is aten.transpose.int and axis in _axes(source):
            (other,) = _axes(source) - {axis}
            sliced = insert(node, aten.slice.Tensor, source.args[0], other, *bounds)
            replace(node, insert(node, aten.transpose.int, sliced, axis, other))
    tidy(program)


def _axes(turn: Node) -> set[int]:
    """The two that a transposition swaps."""
    rank = len(shape_of(turn))
    return {int(axis) % rank for axis in turn.args[1:]}


def _spell_softplus(program: ExportedProgram) -> None:
    """softplus(x) = max(x, 0) + log1p(exp(-|x|)); PyTorch's beyond 20, x itself, is the same.

    Of XNNPACK's operators only log would do, which loses what is small beside 1, and with it the
    slow decays.
    """
    for node in nodes_of(program, aten.softplus.default):
        x, *more = node.args
        assert more in ([], [1, 20], [1.0, 20.0])
        above = insert(node, aten.relu.default, x)
        distance = insert(node, aten.sub.Tensor, x, insert(node, aten.mul.Tensor, above, 2.0))
        rest = insert(node, aten.log1p.default, insert(node, aten.exp.default, distance))
        replace(node, insert(node, aten.add.Tensor, above, rest))


def _take_parts(program: ExportedProgram) -> None:
    """Parts of the last axis or the first, all of fixed sizes, as slices that XNNPACK takes."""
    for node in nodes_of(program, aten.split_with_sizes.default, aten.chunk.default):
        x, parts, axis = node.args
        last = len(shape_of(x)) - 1
        if axis not in (-1, last):
            continue
        width = int(shape_of(x)[last])
        sizes = [width // parts] * parts if node.target is aten.chunk.default else list(parts)
        assert sum(sizes) == width
        ends = list(accumulate(sizes))
        for part in list(node.users):
            number: Any = part.args[1]
            assert part.target is operator.getitem
            bounds = ends[number] - sizes[number], ends[number]
            replace(part, insert(part, aten.slice.Tensor, x, last, *bounds))
        node.graph.erase_node(node)
    for node in nodes_of(program, aten.slice.Tensor):
        x, axis, start, end, *step = (*node.args, _LARGEST)[: max(4, len(node.args))]
        rank = len(shape_of(x))
        axis %= rank
        size = shape_of(x)[axis]
        fixed = all(isinstance(number, int) for number in (start, end, size)) and not step
        if axis in (0, rank - 1) and rank > 2 and fixed and x.meta["val"].is_floating_point():
            start, end = (bound + size if bound < 0 else min(bound, size) for bound in (start, end))
            node.args = x, axis, start, end
            node.meta[TAKEN] = True
