"""AltUp (arXiv 2301.13310) in XNNPACK's operators: several streams of a token, `[A, 1, T, d]`.

Letters: A streams, T tokens, d width.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    nodes_of,
    replace,
    shape_of,
)
from edgeinfinite.export.executorch.slices import TAKEN

aten = torch.ops.aten


def streams(program: ExportedProgram) -> int:
    """Stacks them by views, takes one as a slice, and repeats none for what is multiplied anyway.

    Returns:
        How often they are stacked; 0 in a model with one stream, which stays as it is.
    """
    stacks = [node for node in nodes_of(program, aten.stack.default) if _stacks_streams(node)]
    if not stacks:
        return 0
    for node in nodes_of(program, aten.mean.dim):
        source: Any = node.args[0]
        if source in stacks and list(node.args[1]) == [0]:
            _mean(node, list(source.args[0]))
    for node in nodes_of(program, aten.repeat.default):
        if all(_repeats_by_itself(user, node) for user in node.users):
            replace(node, node.args[0])
    for node in stacks:
        parts = [insert(node, aten.unsqueeze.default, part, 0) for part in node.args[0]]
        replace(node, insert(node, aten.cat.default, parts, 0))
    for node in nodes_of(program, aten.select.int):
        _select(node)
    for node in nodes_of(program, aten.slice.Tensor):
        if len(shape_of(node)) == 4 and node.args[1] == 0:
            node.meta[TAKEN] = True
    for node in nodes_of(program, aten.multiply.Tensor):
        node.target = aten.mul.Tensor
    for node in nodes_of(program, aten.std.dim):
        _deviation(node)
    for node in nodes_of(program, aten.where.ScalarOther):
        condition, x, other = node.args
        value = constant(program, f"token_{other}", torch.tensor(other, dtype=torch.int64))
        replace(node, insert(node, aten.where.self, condition, x, value))
    return len(stacks)


def _stacks_streams(node: Node) -> bool:
    shape = shape_of(node)
    return node.args[1:] in ((), (0,)) and len(shape) == 4 and shape[1] == 1


def _repeats_by_itself(product: Node, repeated: Node) -> bool:
    """Whether a product with a repeated tensor has the same shape without its being repeated."""
    if product.target is not aten.mul.Tensor:
        return False
    x: Any = repeated.args[0]
    operands = [x if source is repeated else source for source in product.all_input_nodes]
    made = torch.broadcast_shapes(*map(shape_of, operands))
    return list(map(str, made)) == list(map(str, shape_of(product)))


def _mean(node: Node, parts: list[Node]) -> None:
    """Of streams that are added, since XNNPACK can't reduce over one axis."""
    total = parts[0]
    for part in parts[1:]:
        total = insert(node, aten.add.Tensor, total, part)
    replace(node, insert(node, aten.mul.Tensor, total, 1.0 / len(parts)))


def _select(node: Node) -> None:
    """One of several along an axis of fixed size, as a slice and a view."""
    x, axis, at = node.args
    assert isinstance(x, Node)
    shape = shape_of(x)
    size = shape[operator.index(axis)]
    if not node.meta["val"].is_floating_point() or len(shape) != 4 or not isinstance(size, int):
        return
    at = operator.index(at) % size
    piece = insert(node, aten.slice.Tensor, x, axis, at, at + 1)
    piece.meta[TAKEN] = True
    replace(node, insert(node, aten.squeeze.dim, piece, axis))


def _deviation(node: Node) -> None:
    """sqrt(mean((x - mean)²)), of a whole population, over the last axis."""
    x, axes, unbiased, keep = node.args
    assert (axes, unbiased, keep) == ([-1], False, True), node.args
    centred = insert(node, aten.sub.Tensor, x, insert(node, aten.mean.dim, x, [-1], True))
    square = insert(node, aten.pow.Tensor_Scalar, centred, 2)
    mean = insert(node, aten.mean.dim, square, [-1], True)
    replace(node, insert(node, aten.sqrt.default, mean))
