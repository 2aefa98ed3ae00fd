"""Lets Q, K and V share one quantized input, and also the MLP's first two projections.

torchao quantizes the input separately for every linear layer, every layer with offsets sums the
groups of its input separately, and every divided layer slices it and sums up its groups.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torchao.quantization.quant_primitives
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import nodes_of, replace

aten, torchao = torch.ops.aten, torch.ops.torchao


def shared_inputs(program: ExportedProgram) -> int:
    """Merges equal calls (same operator, same arguments) in front of quantized layers."""
    seen: dict[Any, Node] = {}
    found = 0
    for node in nodes_of(
        program,
        aten.cat.default,
        aten.mul.Tensor,
        aten.reshape.default,
        aten.slice.Tensor,
        aten.sum.dim_IntList,
        aten.zeros.default,
        torchao.choose_qparams_affine.default,
        torchao.quantize_affine.default,
        torchao.dequantize_affine.default,
        operator.getitem,
    ):
        key = (node.target, repr(node.args))
        if key in seen:
            replace(node, seen[key])
            found += 1
        else:
            seen[key] = node
    return found
