"""Rewrites a layer's short causal convolution as products, which XNNPACK takes with any T.

XNNPACK's partitions have no convolution over a dynamic number of tokens, and no slices of one. Of
the columns J = [state, new] `[1, E, R + T]` and the kernel's columns w `[E, R + 1]` a token reads

    y[:, t] = w_R ∘ new[:, t] + Σ_k w_k ∘ J[:, t + k],  k < R

J's columns move by products with a matrix of ones and zeros. That is exact, all layers share it,
and beside the layer's projections it is cheap (R (R + T) T E against 4 T E²). One token reads
R + 1 columns, so its y is a sum. The new state is the last R columns of J, a product likewise.

Letters: E channels, R columns of a state, T new tokens.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    insert_view,
    is_constant,
    nodes_of,
    replace,
    shape_of,
    value_of,
)
from edgeinfinite.export.executorch.slices import TAKEN

aten = torch.ops.aten
_KEEPS = (aten.to.dtype, aten.to.device, aten.squeeze.dim, aten.unsqueeze.default)


class _Found(NamedTuple):
    """A convolution over a state and new columns.

    Args:
        state: `[1, E, R]`.
        new: `[1, E, T]`.
        joined: both, `[1, E, R + T]`.
        kernel: `[E, 1, R + 1]`.
        bias: `[E]` or None.
        result: of the new columns, `[1, E, T]`.
    """

    state: Node
    new: Node
    joined: Node
    kernel: Node
    bias: Node | None
    result: Node


class _Moves(NamedTuple):
    """What moves columns, the same for all layers with this R.

    Args:
        band: `[1, R (R + T), T]`, for each k < R the ones that move column t + k to t.
        last: `[1, R + T, R]`, picks the last R columns.
    """

    band: Node
    last: Node


def short_convolutions(program: ExportedProgram) -> int:
    """Convolutions over a state and new tokens, and the states that they leave."""
    moves: dict[int, _Moves] = {}
    count = 0
    for node in nodes_of(program, aten.conv1d.default):
        found = _found(program, node)
        if found is None:
            continue
        columns = int(shape_of(found.state)[2])
        _divided_in_xnnpack(found.new)
        one = isinstance(shape_of(found.new)[2], int)
        if not one and columns not in moves:
            moves[columns] = _moves(program, found.joined, found.new, columns)
        result = _of_one(program, found) if one else _of_many(program, found, moves[columns].band)
        if found.bias is not None:
            bias = value_of(program, found.bias).reshape(1, -1, 1)
            name = f"{found.bias.name}_column"
            result = insert(found.result, aten.add.Tensor, result, constant(program, name, bias))
        replace(found.result, result)
        if not one:
            _pick_last(found.joined, columns, moves[columns].last)
        count += 1
    return count


def _found(program: ExportedProgram, node: Node) -> _Found | None:
    defaults: list[Any] = [None, [1], [0], [1], 1]
    given: list[Any] = [*node.args, *defaults[len(node.args) - 2 :]]
    x, kernel, bias, *settings = given
    assert isinstance(x, Node) and isinstance(kernel, Node)
    joined, kernel = _source(x), _source(kernel)
    if joined.target is not aten.cat.default or not is_constant(program, kernel):
        return None
    parts: Any = joined.args[0]
    if len(parts) != 2 or list(joined.args[1:]) not in ([-1], [2]):
        return None
    state, new = _source(parts[0]), parts[1]
    channels, _, length = value_of(program, kernel).shape
    if list(shape_of(state)) != [1, channels, length - 1]:
        return None
    if settings != [[1], [length - 1], [1], channels]:
        return None
    result = _cut(node, joined, new)
    if result is None or not (bias is None or is_constant(program, bias)):
        return None
    return _Found(state, new, joined, kernel, bias, result)


def _cut(node: Node, joined: Node, new: Node) -> Node | None:
    """The results for the new columns: y[:, :, :R + T][:, :, -T:], and nothing else of y."""
    for like in (joined, new):
        users = list(node.users)
        if len(users) != 1 or users[0].target is not aten.slice.Tensor:
            return None
        node = users[0]
        axis, start, *end = node.args[1:]
        until_end = not end or end[0] == torch.iinfo(torch.int64).max
        whole_start = start in (None, 0) if like is joined else until_end
        if axis != 2 or not whole_start or str(shape_of(node)) != str(shape_of(like)):
            return None
        while len(node.users) == 1 and next(iter(node.users)).target is aten.to.dtype:
            node = next(iter(node.users))
    return node


def _source(node: Node) -> Node:
    """What a node is without changes of its type, none, and axes of size 1."""
    while node.target in _KEEPS:
        given: Any = node.args[0]
        if given.meta["val"].dtype != node.meta["val"].dtype:
            break
        node = given
    return node


def _divided_in_xnnpack(new: Node) -> None:
    """Marks the slices that a layer's projection is divided by, so that XNNPACK takes them."""
    for part in new.all_input_nodes:
        chunk = part.args[0] if part.target is operator.getitem else None
        if not isinstance(chunk, Node) or chunk.target is not aten.chunk.default:
            continue
        given: Any = chunk.args
        x, count, axis = given
        size = int(shape_of(x)[axis]) // count
        for used in list(chunk.users):
            number: Any = used.args[1]
            at = len(shape_of(x)) + axis if axis < 0 else axis
            piece = insert(used, aten.slice.Tensor, x, at, number * size, (number + 1) * size)
            piece.meta[TAKEN] = True
            replace(used, piece)


def _of_one(program: ExportedProgram, found: _Found) -> Node:
    """The sum over the columns of one token."""
    weights = value_of(program, found.kernel).transpose(0, 1).contiguous()  # [1, E, R + 1]
    named = constant(program, f"{found.kernel.name}_columns", weights)
    weighted = insert(found.result, aten.mul.Tensor, found.joined, named)
    return insert(found.result, aten.sum.dim_IntList, weighted, [-1], True)


def _of_many(program: ExportedProgram, found: _Found, band: Node) -> Node:
    """The newest column by itself, the earlier ones moved by one product."""
    weights = value_of(program, found.kernel)[:, 0]
    columns = [
        constant(program, f"{found.kernel.name}_{k}", weights[:, k].reshape(1, -1, 1).clone())
        for k in range(weights.shape[1])
    ]
    before = found.result
    earlier = [insert(before, aten.mul.Tensor, found.joined, one) for one in columns[:-1]]
    joined = earlier[0] if len(earlier) == 1 else insert(before, aten.cat.default, earlier, 2)
    moved = insert(before, aten.bmm.default, joined, band)
    newest = insert(before, aten.mul.Tensor, found.new, columns[-1])
    return insert(before, aten.add.Tensor, moved, newest)


def _pick_last(joined: Node, columns: int, last: Node) -> None:
    """Joined[:, :, -R:] as a product."""
    for user in list(joined.users):
        if user.target is aten.slice.Tensor and list(user.args[1:3]) == [2, -columns]:
            replace(user, insert(user, aten.bmm.default, joined, last))


def _moves(program: ExportedProgram, joined: Node, new: Node, columns: int) -> _Moves:
    """The matrices, in float arithmetic only, which XNNPACK takes; behind `joined`."""
    before = joined.next
    tokens = insert(before, aten.sym_size.int, *_input_of_size(program, new))
    times = insert(before, aten.arange.default, tokens, dtype=torch.float32)
    row = insert_view(before, times, [1, 1, -1])  # t
    first = constant(program, f"first_of_{columns}", torch.arange(float(columns)).reshape(1, -1, 1))
    rest = insert(before, aten.add.Tensor, insert_view(before, times, [1, -1, 1]), float(columns))
    places = insert(before, aten.cat.default, [first, rest], 1)  # s, [1, R + T, 1]
    ahead = insert(before, aten.sub.Tensor, places, row)  # s - t
    bands = [_ones_at(before, ahead, float(k)) for k in range(columns)]
    band = bands[0] if columns == 1 else insert(before, aten.cat.default, bands, 1)
    # T as a number: a product of T ones with T ones.
    ones = insert(before, aten.add.Tensor, insert(before, aten.mul.Tensor, times, 0.0), 1.0)
    count = insert(
        before,
        aten.bmm.default,
        insert_view(before, ones, [1, 1, -1]),
        insert_view(before, ones, [1, -1, 1]),
    )
    behind = insert(before, aten.sub.Tensor, places, count)
    numbers = constant(program, f"row_of_{columns}", torch.arange(float(columns)).reshape(1, 1, -1))
    return _Moves(band, _ones_at(before, insert(before, aten.sub.Tensor, behind, numbers), 0.0))


def _input_of_size(program: ExportedProgram, new: Node) -> tuple[Node, int]:
    """An input of T on some axis, and the axis: to ask XNNPACK's results would wait for them."""
    tokens = str(shape_of(new)[2])
    for node in program.graph.find_nodes(op="placeholder"):
        sizes = getattr(node.meta["val"], "shape", ())
        for axis, size in enumerate(sizes):
            if str(size) == tokens:
                return node, axis
    return new, 2


def _ones_at(before: Node, x: Node, number: float) -> Node:
    """1 where a tensor of whole numbers has this number, else 0."""
    off = insert(before, aten.sub.Tensor, x, number) if number else x
    squared = insert(before, aten.mul.Tensor, off, off)
    less = insert(before, aten.add.Tensor, insert(before, aten.neg.default, squared), 1.0)
    return insert(before, aten.clamp.default, less, 0.0, 1.0)
