"""Computes at export time what depends on single numbers only, as Gemma 3n's share of its inputs.

Its MLPs ask `torch.distributions` for a quantile. What that checks on the way goes, too.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node, map_arg

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    is_constant,
    nodes_of,
    value_of,
)

aten = torch.ops.aten

_KEPT = (aten.lift_fresh_copy.default, aten.detach_.default, aten.to.dtype)
_OF_NUMBERS = (
    *_KEPT,
    operator.getitem,
    aten._is_all_true.default,
    aten.add.Tensor,
    aten.broadcast_tensors.default,
    aten.eq.Tensor,
    aten.erfinv.default,
    aten.gt.Scalar,
    aten.mul.Tensor,
    aten.ne.Scalar,
    aten.sub.Tensor,
)


def folded_numbers(program: ExportedProgram) -> int:
    """Numbers that a module makes while it runs, and what follows of them alone, become constants.

    Returns:
        How many constants.
    """
    known: dict[Node, Any] = {}
    for node in nodes_of(program, *_OF_NUMBERS):
        sources = node.all_input_nodes
        made = node.target is aten.lift_fresh_copy.default and is_constant(program, sources[0])
        if made:
            known[node] = value_of(program, sources[0])
        elif sources and all(source in known for source in sources):
            target: Any = node.target
            arguments = map_arg(node.args, known.__getitem__)
            known[node] = arguments[0] if target in _KEPT[:2] else target(*arguments, **node.kwargs)
    found = 0
    for node, value in reversed(known.items()):
        readers = [user for user in node.users if user not in known]
        if readers:
            number = constant(program, f"number_of_{node.name}", value.clone())
            for user in readers:
                user.replace_input_with(node, number)
            found += 1
        if not node.users:
            node.graph.erase_node(node)
    return found
