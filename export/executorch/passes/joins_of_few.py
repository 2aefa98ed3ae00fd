"""Concatenations that XNNPACK takes: of at most five tensors, so longer ones become several."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace

aten = torch.ops.aten
_AT_ONCE = 4
_MOST = 5


def joins_of_few(program: ExportedProgram) -> int:
    """`cat` and `stack` of more tensors by fours, and these again."""
    found = 0
    for node in nodes_of(program, aten.cat.default, aten.stack.default):
        parts, axis = _arguments(*node.args)
        if len(parts) <= _MOST:
            continue
        if node.target is aten.stack.default:
            parts = [insert(node, aten.unsqueeze.default, part, axis) for part in parts]
        while len(parts) > 1:
            fours = [parts[at : at + _AT_ONCE] for at in range(0, len(parts), _AT_ONCE)]
            parts = [insert(node, aten.cat.default, four, axis) for four in fours]
        replace(node, parts[0])
        found += 1
    return found


def _arguments(parts: list[Node], axis: int = 0) -> tuple[list[Node], int]:
    """Those of the operator, with its default."""
    return list(parts), axis
