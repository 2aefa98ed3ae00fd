"""Rewrites changes of shape as views with at most one open size, which XNNPACK requires."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import (
    insert_view,
    nodes_of,
    replace,
    shape_of,
)

aten = torch.ops.aten

_RESHAPES = (
    aten.view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.flatten.using_ints,
)


def shapes_as_views(program: ExportedProgram) -> int:
    """Rewrites reshapes, and selecting or expanding an axis of size 1, as such views.

    The open size is written as -1. Integer tensors are left alone, because XNNPACK doesn't take
    positions anyway.
    """
    found = 0
    for node in nodes_of(program, *_RESHAPES, aten.select.int, aten.expand.default):
        x: Any = node.args[0]
        if not node.meta["val"].is_floating_point() or not _only_reshapes(node, x):
            continue
        sizes = [size if isinstance(size, int) else -1 for size in shape_of(node)]
        if sizes.count(-1) > 1:
            continue
        if _same(shape_of(x), shape_of(node)):
            replace(node, x)
        elif node.target is aten.view.default and list(node.args[1]) == sizes:
            continue
        else:
            replace(node, insert_view(node, x, sizes))
        found += 1
    return found


def _only_reshapes(node: torch.fx.Node, x: torch.fx.Node) -> bool:
    if node.target is aten.select.int:
        return bool(shape_of(x)[node.args[1]] == 1)
    if node.target is aten.expand.default:
        return _same(shape_of(x), shape_of(node)[-len(shape_of(x)) :])
    return True


def _same(one: torch.Size, other: torch.Size) -> bool:
    """Whether two shapes are equal for every value of their symbols."""
    return len(one) == len(other) and all(str(a) == str(b) for a, b in zip(one, other, strict=True))
