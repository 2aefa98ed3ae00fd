"""Computes the last MLP for the last token only: only its logits are needed (MOM, 2504.12526).

The backbone selects the last token in front of the LM head. Between the last attention and the
selection every operator treats each token separately, so the selection can move up.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node, map_arg

from edgeinfinite.export.executorch.passes.graph_tools import (
    insert,
    nodes_of,
    replace,
    shape_of,
)

aten = torch.ops.aten

_TOKEN_BY_TOKEN = {
    "aten.add.Tensor",
    "aten.sub.Tensor",
    "aten.mul.Tensor",
    "aten.div.Tensor",
    "aten.silu.default",
    "aten.gelu.default",
    "aten.relu.default",
    "aten.tanh.default",
    "aten.pow.Tensor_Scalar",
    "aten.rsqrt.default",
    "aten.to.dtype",
    "aten.linear.default",
    "torchao.choose_qparams_affine.default",
    "torchao.quantize_affine.default",
    "torchao.dequantize_affine.default",
}


def last_token_first(program: ExportedProgram) -> int:
    """Moves `x[:, -1:]` up to the last operator that mixes tokens."""
    found = 0
    for node in nodes_of(program, aten.slice.Tensor):
        x: Any = node.args[0]
        if list(node.args[1:3]) == [1, -1] and _has_tokens(x):
            done = dict.fromkeys(_only_for(node))
            replace(node, _last_of(x, node, done))
            found += 1
    return found


def _only_for(selection: Node) -> set[Node]:
    """The operators before the selection whose results only the selection needs."""
    only = {selection}
    for node in reversed(selection.graph.nodes):
        if node.users and only.issuperset(node.users) and _is_token_by_token(node):
            only.add(node)
    return only - {selection}


def _is_token_by_token(node: Node) -> bool:
    if node.target in (aten.mean.dim, aten.sum.dim_IntList):
        return node.args[1] == [-1]
    if node.target is aten.reshape.default:  # x[1, T, ...] as groups of its last axis
        return node.args[1][:2] == [1, -1] and len(shape_of(node)) > len(shape_of(node.args[0]))
    if node.target in (aten.slice.Tensor, aten.cat.default):  # of its last axis
        return node.args[1] in (-1, len(shape_of(node)) - 1)
    source: Any = node.args[0] if node.args else None
    if node.target is aten.chunk.default:  # of its last axis
        return node.args[2:] in ((-1,), (len(shape_of(source)) - 1,))
    if node.target is operator.getitem:
        return _is_token_by_token(source)
    return str(node.target) in _TOKEN_BY_TOKEN


def _last_of(node: Node, before: Node, done: dict[Node, Node | None]) -> Node:
    """`node[:, -1:]`.

    Args:
        node: what to select from.
        before: where new nodes go.
        done: operators to compute for the last token only, each with its new node or None;
            gets what else is computed for it.
    """
    last = done.get(node)
    if last is not None:
        return last
    if node in done or _is_rounding(node):
        arguments = map_arg(node.args, lambda x: _last_of(x, before, done) if _has_tokens(x) else x)
        last = insert(before, node.target, *arguments, **node.kwargs)
    else:
        last = insert(before, aten.slice.Tensor, node, 1, -1, torch.iinfo(torch.int64).max)
    done[node] = last
    return last


def _is_rounding(node: Node) -> bool:
    """Whether a node rounds the inputs of a linear layer.

    Several layers share it where attention and MLP have one input. It is done again for the last
    token, since XNNPACK takes a layer with rounded weights only right behind it.
    """
    if node.target is operator.getitem:
        return _is_rounding(node.all_input_nodes[0])
    return str(node.target).startswith("torchao.")


def _has_tokens(node: Node) -> bool:
    """Whether a node's tensor is `[1, T, ...]` with dynamic T; weights aren't."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return isinstance(value, (tuple, list))
    return value.dim() in (2, 3, 4) and not isinstance(value.shape[1], int)
