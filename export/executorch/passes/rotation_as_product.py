"""Rewrites RoPE's `rotate_half` as a product with a constant matrix.

The original uses slices. XNNPACK takes slices only without dynamic sizes, so they would split every
layer of prefill three times. The matrix has one 1 or -1 per column, so the product is exact. It is
cheap beside the projections (D² against d·D per head).
"""

from __future__ import annotations

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

aten = torch.ops.aten


def rotation_as_product(program: ExportedProgram) -> int:
    """Where neighbours or halves turn into each other, x Rᵀ with R = [[0, -1], [1, 0]].

    R is in blocks of h = D / 2 for cat(-x[..., h:], x[..., :h]), and in blocks of 1 for the stack
    of -x[..., 1::2] and x[..., ::2]. Where the other part is negated, it is -R.
    """
    found = 0
    for node in nodes_of(program, aten.cat.default, aten.flatten.using_ints):
        joined = node if node.target is aten.cat.default else _stacked(node)
        turn = None if joined is None else _turn(joined, node)
        if turn is None:
            continue
        x, interleaved, backwards = turn
        dim = shape_of(x)[-1]
        name = f"rotation_of_{dim}" + "_interleaved" * interleaved + "_backwards" * backwards
        weight = rotation(dim, interleaved=interleaved)
        weight = constant(program, name, -weight if backwards else weight)
        replace(node, insert(node, aten.linear.default, x, weight))
        found += 1
    return found + _repeated_as_product(program)


def _repeated_as_product(program: ExportedProgram) -> int:
    """repeat_interleave(x, 2) of the last axis, as angles of neighbours are: x Eᵀ."""
    found = 0
    for node in nodes_of(program, aten.repeat_interleave.self_int):
        x, *given = node.args
        assert isinstance(x, Node)
        axis = given[1] if len(given) > 1 else None
        size = shape_of(x)[-1]
        if given[0] != 2 or axis not in (-1, len(shape_of(x)) - 1) or not isinstance(size, int):
            continue
        weight = constant(program, f"twice_of_{size}", torch.eye(size).repeat_interleave(2, 0))
        replace(node, insert(node, aten.linear.default, x, weight))
        found += 1
    return found


def rotation(dim: int, *, interleaved: bool = False) -> torch.Tensor:
    """R `[D, D]` float32 with x Rᵀ = rotate_half(x)."""
    block = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    one = torch.eye(dim // 2)
    return torch.kron(one, block) if interleaved else torch.kron(block, one)


def _stacked(node: Node) -> Node | None:
    """The stack of two parts along a new last axis, where `node` flattens that axis."""
    stack, *axes = node.args
    assert isinstance(stack, Node)
    if stack.target is not aten.stack.default or len(axes) not in (1, 2):
        return None
    dims = len(shape_of(stack))
    along = stack.args[1] if len(stack.args) > 1 else 0
    start, end = [int(axis) % dims for axis in (*axes, -1)[:2]]
    last = along in (-1, dims - 1) and start == dims - 2 and end == dims - 1
    return stack if last else None


def _turn(joined: Node, result: Node) -> tuple[Node, bool, bool] | None:
    """x, whether neighbours turn, and whether backwards; None for anything else."""
    parts: Any = joined.args[0]
    interleaved = joined.target is aten.stack.default
    if not interleaved:
        axis = joined.args[1] if len(joined.args) > 1 else 0
        if axis not in (-1, len(shape_of(joined)) - 1):
            return None
    if len(parts) != 2:
        return None
    negated = [part.target is aten.neg.default for part in parts]
    if sum(negated) != 1:
        return None
    read = [
        _slice_of_last(part.args[0] if negative else part)
        for part, negative in zip(parts, negated, strict=True)
    ]
    if read[0] is None or read[1] is None or read[0][0] is not read[1][0]:
        return None
    x, second, first = read[0][0], read[0][1:], read[1][1:]
    dim = shape_of(x)[-1]
    if shape_of(result)[-1] != dim:
        return None
    half = dim // 2
    wanted = ((0, dim, 2), (1, dim, 2)) if interleaved else ((0, half, 1), (half, dim, 1))
    return (x, interleaved, negated[1]) if (first, second) == wanted else None


def _slice_of_last(node: Node) -> tuple[Node, int, int, int] | None:
    """(x, begin, end, step) of x[..., begin:end:step]."""
    if node.target is not aten.slice.Tensor:
        return None
    x: Any = node.args[0]
    given: list[Any] = list(node.args[1:])
    axis, begin, end, step = given + [0, None, None, 1][len(given) :]
    size = shape_of(x)[-1]
    if axis not in (-1, len(shape_of(x)) - 1) or not isinstance(size, int):
        return None
    return x, int(begin or 0), size if end is None else min(int(end), size), int(step)
