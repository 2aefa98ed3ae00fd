"""LayerNorm (arXiv 1607.06450) in operators that XNNPACK's partitioner takes.

It takes no LayerNorm: each would split the graph, and ExecuTorch's own way of lowering, which the
rest then goes, takes a minute for two layers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace

aten = torch.ops.aten
_EPSILON = 1e-5


def layer_norm_as_means(program: ExportedProgram) -> int:
    """(x - mean) / sqrt(mean((x - mean)²) + ε) · w + b, over the last axis."""
    found = 0
    for node in nodes_of(program, aten.layer_norm.default):
        x, sizes, weight, bias, epsilon = _arguments(*node.args)
        if len(sizes) != 1:
            continue
        centred = insert(node, aten.sub.Tensor, x, insert(node, aten.mean.dim, x, [-1], True))
        square = insert(node, aten.pow.Tensor_Scalar, centred, 2)
        variance = insert(node, aten.mean.dim, square, [-1], True)
        scale = insert(node, aten.rsqrt.default, insert(node, aten.add.Tensor, variance, epsilon))
        result = insert(node, aten.mul.Tensor, centred, scale)
        if weight is not None:
            result = insert(node, aten.mul.Tensor, result, weight)
        if bias is not None:
            result = insert(node, aten.add.Tensor, result, bias)
        replace(node, result)
        found += 1
    return found


def _arguments(
    x: Any, sizes: Any, weight: Any = None, bias: Any = None, epsilon: Any = _EPSILON, *_: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Those of the operator, with its defaults."""
    return x, sizes, weight, bias, epsilon
