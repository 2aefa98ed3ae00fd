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
    """cat(-x[..., h:], x[..., :h]) = x Rᵀ with R = [[0, -1], [1, 0]] in blocks of h = D / 2."""
    found = 0
    for node in nodes_of(program, aten.cat.default):
        x = _rotated(node)
        if x is None:
            continue
        dim = shape_of(x)[-1]
        weight = constant(program, f"rotation_of_{dim}", rotation(dim))
        replace(node, insert(node, aten.linear.default, x, weight))
        found += 1
    return found


def rotation(dim: int) -> torch.Tensor:
    """R `[D, D]` float32 with x Rᵀ = rotate_half(x)."""
    half = torch.eye(dim // 2)
    zero = torch.zeros_like(half)
    return torch.cat([torch.cat([zero, -half], 1), torch.cat([half, zero], 1)])


def _rotated(node: Node) -> Node | None:
    """x, where `node` is cat(-x[..., D/2:], x[..., :D/2])."""
    parts: Any = node.args[0]
    axis = node.args[1] if len(node.args) > 1 else 0
    if len(parts) != 2 or axis not in (-1, len(shape_of(node)) - 1):
        return None
    negated, first = parts
    if negated.target is not aten.neg.default:
        return None
    second = negated.args[0]
    halves = [_slice_of_last(first), _slice_of_last(second)]
    if halves[0] is None or halves[1] is None or halves[0][0] is not halves[1][0]:
        return None
    x = halves[0][0]
    dim = shape_of(x)[-1]
    if (halves[0][1:], halves[1][1:]) != ((0, dim // 2), (dim // 2, dim)):
        return None
    return x


def _slice_of_last(node: Node) -> tuple[Node, int, int] | None:
    """(x, begin, end) of x[..., begin:end]."""
    if node.target is not aten.slice.Tensor or len(node.args) > 4:
        return None
    x: Any = node.args[0]
    given: list[Any] = list(node.args[1:])
    axis, begin, end = given + [0, None, None][len(given) :]
    size = shape_of(x)[-1]
    if axis not in (-1, len(shape_of(x)) - 1) or not isinstance(size, int):
        return None
    return x, int(begin or 0), size if end is None else min(int(end), size)
