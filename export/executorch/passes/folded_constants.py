"""Computes at export time what depends on weights only: the gate's sigmoid, zeros."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    is_constant,
    nodes_of,
    replace,
    value_of,
)

aten = torch.ops.aten


def folded_constants(program: ExportedProgram) -> int:
    """sigmoid(g) of a parameter g, and tensors of zeros of fixed sizes, become constants."""
    found = 0
    for node in nodes_of(program, aten.sigmoid.default, aten.zeros.default):
        source: Any = node.args[0]
        if node.target is aten.zeros.default:
            if any(isinstance(size, Node) for size in source):
                continue
            name, value = "zeros_" + "_".join(map(str, source)), torch.zeros(source)
        elif is_constant(program, source):
            name, value = f"sigmoid_of_{source.name}", torch.sigmoid(value_of(program, source))
        else:
            continue
        replace(node, constant(program, name, value))
        found += 1
    return found
