"""RMSNorm's mean over the last axis as a product with a column of 1/d.

XNNPACK takes no mean over one axis; left as it is, it would cut the graph at every norm.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    nodes_of,
    replace,
    shape_of,
)

aten = torch.ops.aten


def mean_as_product(program: ExportedProgram) -> int:
    """mean(x, -1, keepdim) = x @ [1/d, ..., 1/d]ᵀ, as a linear layer, which takes any rank."""
    found = 0
    for node in nodes_of(program, aten.mean.dim):
        x, dims, *rest = node.args
        rank = len(shape_of(x))
        if [d % rank for d in dims] != [rank - 1] or rest[:1] != [True]:
            continue
        width: int | torch.SymInt = shape_of(x)[-1]
        if not isinstance(width, int):
            continue
        weight = constant(program, f"mean_of_{width}", torch.full((1, width), 1.0 / width))
        replace(node, insert(node, aten.linear.default, x, weight))
        found += 1
    return found
