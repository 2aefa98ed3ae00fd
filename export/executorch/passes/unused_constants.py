"""Removes constants that nothing reads.

Tracing keeps every parameter of a module, the retention scorer's in the graphs for tokens too, and
ExecuTorch would write them into the program.
"""

from __future__ import annotations

from executorch.backends.transforms.utils import delete_constant_placeholder
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import is_constant


def unused_constants(program: ExportedProgram) -> int:
    """Removes them.

    Returns:
        How many there were.
    """
    unused = [n for n in program.graph.nodes if is_constant(program, n) and not n.users]
    for node in unused:
        delete_constant_placeholder(program, node)
    return len(unused)
