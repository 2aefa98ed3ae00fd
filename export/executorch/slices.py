"""Lets XNNPACK take slices of tensors with a dynamic size.

XNNPACK infers what a slice leaves whole (a size of 0), but ExecuTorch writes the largest size that
a dimension can have, and so refuses dynamic ones. A layer that is divided by its inputs slices the
last dimension, whatever the number of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from executorch.backends.xnnpack.operators import node_visitor
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

TAKEN = "edgeinfinite_taken"
"""In a slice's `meta`: a pass knows that XNNPACK has what comes before and behind it."""

_TARGET = "aten.slice_copy.Tensor"


def is_part_of_input(node: Node) -> bool:
    """Whether a node is some of the inputs of a linear layer, to be rounded to 8 bits, or `TAKEN`.

    Other slices stay where they are: to take them would tear partitions apart.
    """
    if node.target is not exir_ops.edge.aten.slice_copy.Tensor:
        return False
    if node.meta.get(TAKEN):
        return True
    last = node.meta["val"].dim() - 1
    return node.args[1] in (-1, last) and all(_leads_to_rounding(user) for user in node.users)


def _leads_to_rounding(node: Node) -> bool:
    if node.target is exir_ops.edge.aten.cat.default:
        return all(_leads_to_rounding(user) for user in node.users)
    return any(name in str(node.target) for name in ("choose_qparams_affine", "quantize_affine"))


@contextmanager
def inferred_sizes() -> Iterator[None]:
    """Inside, a slice is written with sizes of 0 for the dimensions that it leaves whole."""
    visitors = node_visitor._node_visitor_dict
    with mock.patch.dict(visitors, {_TARGET: _inferring(visitors[_TARGET])}):
        yield


def _inferring(visitor: Any) -> Any:
    class Inferring(visitor):
        def define_node(self, node: Node, xnn_graph: Any, *more: Any) -> None:
            super().define_node(node, xnn_graph, *more)
            sliced = xnn_graph.xnodes[-1].xnode_union
            axis = int(node.args[1]) % sliced.num_dims
            sliced.sizes = [size if at == axis else 0 for at, size in enumerate(sliced.sizes)]

    return Inferring
