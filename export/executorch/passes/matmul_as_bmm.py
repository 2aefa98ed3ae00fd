"""Rewrites products with one matrix per KV head as a plain `bmm`.

PyTorch decomposes a product of tensors with four and three axes into `expand` and symbolic sizes.
XNNPACK takes neither. The batch is 1, so a reshape does the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import (
    insert,
    insert_view,
    nodes_of,
    replace,
    shape_of,
)

aten = torch.ops.aten


def matmul_as_bmm(program: ExportedProgram) -> int:
    """`[1, K, n, d] @ [K, d, m]` as `[K, n, d]` bmm `[K, d, m]`, seen as `[1, K, n, m]`.

    The open size is n, or K where a product has a matrix for each token.
    """
    found = 0
    for node in nodes_of(program, aten.matmul.default):
        left, right = node.args
        rows, columns = shape_of(left), shape_of(right)
        if len(rows) != 4 or rows[0] != 1 or list(columns[:-2]) not in ([rows[1]], [1, rows[1]]):
            continue
        kv_heads: Any = rows[1]
        count, inner, outer = -1, rows[3], columns[-1]
        if not isinstance(kv_heads, int):
            kv_heads, count = -1, rows[2]
        flat = insert_view(node, left, [kv_heads, count, inner])
        matrices = right
        if len(columns) == 4:
            matrices = insert_view(node, right, [kv_heads, inner, outer])
        product = insert(node, aten.bmm.default, flat, matrices)
        replace(node, insert_view(node, product, [1, kv_heads, count, outer]))
        found += 1
    return found
