"""Arithmetic that writes its result into its input (`x *= y`, `x[1:] += y`) as one that doesn't."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import insert, nodes_of, replace, shape_of

aten = torch.ops.aten

_FUNCTIONAL = {aten.mul_.Tensor: aten.mul.Tensor, aten.add_.Tensor: aten.add.Tensor}
_NEW = (aten.add.Tensor, aten.mul.Tensor, aten.linear.default, aten.matmul.default)
"""Operators whose results are tensors of their own, and no views of others."""

_MAYBE_VIEWS = (
    aten.contiguous.default,
    aten.permute.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.to.dtype,
    aten.type_as.default,
)
"""Operators whose results may be views of their inputs."""


def results_of_their_own(program: ExportedProgram) -> int:
    """Where nothing else reads the input, which is a result itself, or a part of one.

    Whatever else writes into a tensor is left as it is, and lowered the long way.
    """
    found = 0
    for node in nodes_of(program, *_FUNCTIONAL):
        x: Any = node.args[0]
        if _is_its_own(x):
            replace(node, _written(node))
            found += 1
        elif x.target is aten.slice.Tensor and _write_part(node, x):
            found += 1
    return found


def _written(node: Node) -> Node:
    target: Any = _FUNCTIONAL[node.target]
    return insert(node, target, *node.args, **node.kwargs)


def _is_its_own(x: Node) -> bool:
    """Whether nobody but the next one reads a result, or what it is a view of."""
    if len(x.users) != 1:
        return False
    source: Any = x.args[0] if x.args else None
    return x.target in _NEW or (x.target in _MAYBE_VIEWS and _is_its_own(source))


def _write_part(node: Node, part: Node) -> bool:
    """`x[a:b] += y` as a slice, a sum and a copy: what reads x from then on gets it joined anew."""
    whole, axis, start, end = _bounds(part)
    copies = [user for user in node.users if user.target is aten.copy_.default]
    size, order = shape_of(whole)[axis], {n: at for at, n in enumerate(node.graph.nodes)}
    only = len(part.users) == len(node.users) == len(copies) == 1
    if not only or not isinstance(size, int) or not _is_result(whole):
        return False
    (copy,), now = copies, order[node]
    again: Any = copy.args[0]
    same = again.target is part.target and again.args == part.args and len(again.users) == 1
    earlier = [user for user in whole.users if order[user] < now and user is not part]
    if not same or copy.users or any(_is_read_after(user, now, order) for user in earlier):
        return False
    end = min(end, size)
    parts = [
        _written(node)
        if bounds == (start, end)
        else insert(node, part.target, whole, axis, *bounds)
        for bounds in ((0, start), (start, end), (end, size))
        if bounds[0] < bounds[1]
    ]
    joined = insert(node, aten.cat.default, parts, axis)
    for user in [user for user in whole.users if order.get(user, -1) > now]:
        user.replace_input_with(whole, joined)
    for done in (copy, again, node):
        node.graph.erase_node(done)
    return True


def _bounds(part: Node) -> tuple[Node, int, int, int]:
    whole, axis, start, end, *_ = (*part.args, 0, 0, 2**63 - 1)[: max(4, len(part.args))]
    return whole, axis, start, end


def _is_result(x: Node) -> bool:
    """Whether a tensor is a result of its own, however many read it."""
    source: Any = x.args[0] if x.args else None
    return x.target in _NEW or (x.target in _MAYBE_VIEWS and _is_its_own(source))


def _is_read_after(x: Node, now: int, order: dict[Node, int]) -> bool:
    """Whether what may be a view is read behind a place in the graph."""
    if x.target not in _MAYBE_VIEWS:
        return False
    return any(order[user] > now or _is_read_after(user, now, order) for user in x.users)
