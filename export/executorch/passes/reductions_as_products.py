"""Rewrites means and sums over the last axis as products with a column of 1/d, or of ones.

RMSNorm has such a mean, and a quantized layer with offsets has such sums. XNNPACK can't reduce over
one axis, so each of them would split the graph, at every norm and every layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    insert_view,
    nodes_of,
    replace,
    shape_of,
)

aten = torch.ops.aten


def reductions_as_products(program: ExportedProgram) -> int:
    """mean(x, -1) = x @ [1/d, ..., 1/d]ᵀ, as a linear layer, which takes any rank."""
    found = 0
    for node in nodes_of(program, aten.mean.dim, aten.sum.dim_IntList):
        if not reduces_last_axis(node):
            continue
        x: Any = node.args[0]
        width = shape_of(x)[-1]
        of_sum = node.target is aten.sum.dim_IntList
        name, factor = (f"sum_of_{width}", 1.0) if of_sum else (f"mean_of_{width}", 1.0 / width)
        node, times = _multiplied(node)
        if times != 1.0:
            name, factor = f"{name}_times_{times!r}".replace(".", "_"), factor * times
        weight = constant(program, name, torch.full((1, width), factor))
        product = insert(node, aten.linear.default, x, weight)
        if len(shape_of(node)) < len(shape_of(x)):
            sizes = [size if isinstance(size, int) else -1 for size in shape_of(node)]
            product = insert_view(node, product, sizes)
        replace(node, product)
        found += 1
    return found


def _multiplied(node: Node) -> tuple[Node, float]:
    """The product with a number that alone reads the result, and that number; or the node and 1."""
    users = list(node.users)
    if len(users) == 1 and users[0].target is aten.mul.Tensor:
        other = users[0].args[1]
        if isinstance(other, float) and shape_of(users[0]) == shape_of(node):
            return users[0], other
    return node, 1.0


def reduces_last_axis(node: Node) -> bool:
    """Whether a mean or sum is over the last axis alone, which has a fixed size."""
    x: Any = node.args[0]
    rank = len(shape_of(x))
    given: Any = node.args[1]
    axes = [axis % rank for axis in given or []]
    sizes = [size for size in shape_of(node) if not isinstance(size, int)]
    fixed = isinstance(shape_of(x)[-1], int) and len(sizes) <= 1
    return axes == [rank - 1] and fixed and node.meta["val"].is_floating_point()
