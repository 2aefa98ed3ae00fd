"""Rewrites `sort` as `topk` over all elements, because ExecuTorch has no kernel that sorts."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace, shape_of

aten = torch.ops.aten


def sort_as_topk(program: ExportedProgram) -> int:
    """sort(x, -1) = -topk(-x, n), if only the sorted values are used."""
    found = 0
    for node in nodes_of(program, aten.sort.default):
        x: Any = node.args[0]
        axis, descending = (*node.args[1:], -1, False)[:2]
        only_values = all(user.args[1] == 0 or not user.users for user in node.users)
        if axis not in (-1, len(shape_of(x)) - 1) or descending or not only_values:
            continue
        largest = insert(
            node, aten.topk.default, insert(node, aten.neg.default, x), shape_of(x)[-1]
        )
        values = insert(node, aten.neg.default, insert(node, operator.getitem, largest, 0))
        for user in list(node.users):
            replace(user, values)
        node.graph.erase_node(node)
        found += 1
    return found
