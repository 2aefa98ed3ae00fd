"""Stores a program's constants in half precision, where that loses nothing.

For `compress_memory`, whose large constants are the retention scorer's weights: it runs once in N
tokens, and makes them float32 each time. A scorer's file holds halves, so nothing is lost.
"""

from __future__ import annotations

import torch
from executorch.backends.transforms.utils import delete_constant_placeholder
from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    insert,
    is_constant,
    value_of,
)

aten = torch.ops.aten

_WORTHWHILE = 1024
"""Constants with fewer elements stay float32; a call more doesn't pay for them."""


def half_constants(program: ExportedProgram) -> int:
    """Larger float32 constants become float16, followed by a conversion.

    Returns:
        How many constants were converted.
    """
    found = 0
    for node in list(program.graph.nodes):
        if not is_constant(program, node) or not node.users:
            continue
        value = value_of(program, node)
        if value.dtype != torch.float32 or value.numel() < _WORTHWHILE:
            continue
        half = value.half()
        if not torch.equal(half.float(), value):
            continue
        readers = list(node.users)
        stored = constant(program, f"{node.name}_half", half)
        first = next(other for other in program.graph.nodes if other in node.users)
        converted = insert(first, aten.to.dtype, stored, torch.float32)
        for reader in readers:
            reader.replace_input_with(node, converted)
        delete_constant_placeholder(program, node)
        found += 1
    return found
