"""Powers of 1/2 and -1/2 as roots, as in the norms of Gemma 4: XNNPACK takes squares alone."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import aten, insert, nodes_of, replace

_ROOTS = {0.5: aten.sqrt.default, -0.5: aten.rsqrt.default}


def powers_as_roots(program: ExportedProgram) -> int:
    """x^0.5 = sqrt(x), and x^-0.5 = 1 / sqrt(x)."""
    found = 0
    for node in nodes_of(program, aten.pow.Tensor_Scalar):
        exponent: Any = node.args[1]
        if exponent in _ROOTS:
            replace(node, insert(node, _ROOTS[exponent], node.args[0]))
            found += 1
    return found
