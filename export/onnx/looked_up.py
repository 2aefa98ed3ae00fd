"""Which large tables a graph only looks rows up in, for runtimes that map them themselves."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from edgeinfinite.artifact.looked_up import LookedUpTable
from edgeinfinite.export.onnx.passes import split_head

_LEAST_SHARE = 32
"""A table counts from this part of `split_head.LARGE_BYTES` on: the scales of a large table do."""


def looked_up_tables(model: ir.Model) -> list[dict[str, Any]]:
    """The tables of a saved graph whose only readers are Gathers, as the manifest's details.

    Args:
        model: its initializers lie in `weights.data` (`WeightsFile.save`).

    Returns:
        `LookedUpTable` as dictionaries; none if the largest takes no more than a head that stays
        whole, since such a table's pages don't matter.
    """
    found, large = [], split_head.LARGE_BYTES
    for value in model.graph.initializers.values():
        tensor, readers = value.const_value, [node for node, _ in value.uses()]
        if not isinstance(tensor, ir.ExternalTensor) or tensor.nbytes * _LEAST_SHARE < large:
            continue
        if readers and all(node.op_type == "Gather" for node in readers):
            found.append(
                LookedUpTable(
                    name=value.name or "",
                    dtype=tensor.dtype.numpy().name,
                    shape=tuple(tensor.shape.numpy()),
                    offset=tensor.offset or 0,
                )
            )
    if not any(table.bytes > large for table in found):
        return []
    return [table.as_details() for table in found]
