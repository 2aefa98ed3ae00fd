"""Drops the run-time assertions on sizes that tracing leaves behind.

Each of them costs a few instructions per call, and every cache has three. The engine checks what
matters, and the runtime compares every tensor with the program's bounds.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import nodes_of

aten = torch.ops.aten

_ASSERTIONS = (
    aten._assert_scalar.default,
    aten.sym_constrain_range_for_size.default,
    aten.sym_constrain_range.default,
    aten._assert_tensor_metadata.default,
)


def without_assertions(program: ExportedProgram) -> int:
    """Erases the assertions and the nodes that only they read."""
    found = 0
    for node in nodes_of(program, *_ASSERTIONS):
        program.graph.erase_node(node)
        found += 1
    return found
