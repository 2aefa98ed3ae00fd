"""The feature map σ(x) = ELU(x) + 1 in operators that XNNPACK's partitioner takes."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace

aten = torch.ops.aten


def elu_as_exp(program: ExportedProgram) -> int:
    """ELU(x) + 1 = exp(x - relu(x)) + relu(x), where x - relu(x) is min(x, 0), exactly."""
    found = 0
    for node in nodes_of(program, aten.add.Tensor):
        elu, one = node.args
        is_elu = isinstance(elu, torch.fx.Node) and elu.target is aten.elu.default
        if not is_elu or one != 1 or list(elu.args[1:]) not in ([], [1]) or node.kwargs:
            continue
        x = elu.args[0]
        positive = insert(node, aten.relu.default, x)
        negative = insert(node, aten.sub.Tensor, x, positive)
        exponential = insert(node, aten.exp.default, negative)
        replace(node, insert(node, aten.add.Tensor, exponential, positive))
        found += 1
    return found
