"""GELU in its tanh form, exactly: XNNPACK's delegate takes it for the other form, off by 0.0005.

Seen in executorch 1.4.1, which drops the operator's `approximate`. Gemma's MLPs compute with it.
"""

from __future__ import annotations

import math

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace

aten = torch.ops.aten

_LINEAR = 2.0 * math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715 * _LINEAR


def gelu_as_sigmoid(program: ExportedProgram) -> int:
    """x (1 + tanh(u)) / 2 = x sigmoid(2 u), where u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    found = 0
    for node in nodes_of(program, aten.gelu.default):
        if node.kwargs.get("approximate", "none") != "tanh":
            continue
        x = node.args[0]
        square = insert(node, aten.mul.Tensor, x, x)
        factor = insert(node, aten.mul.Tensor, square, _CUBIC)
        factor = insert(node, aten.add.Tensor, factor, _LINEAR)
        share = insert(node, aten.sigmoid.default, insert(node, aten.mul.Tensor, factor, x))
        replace(node, insert(node, aten.mul.Tensor, share, x))
        found += 1
    return found
