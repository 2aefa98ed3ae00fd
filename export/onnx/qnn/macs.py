"""Multiply-accumulate operations of a graph, and which of them the compiler took to the HTP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

_PRODUCTS = {"MatMul": -1, "Gemm": -1, "MatMulNBits": -1}
"""Operators that multiply, and the axis of their first input that is summed over."""


def macs_by_node(model: ir.Model) -> dict[str, int]:
    """MACs of every product in a graph of fixed shapes, by the node's name."""
    found: dict[str, int] = {}
    for node in model.graph.all_nodes():
        axis = _PRODUCTS.get(node.op_type)
        if axis is None:
            continue
        given, made = node.inputs[0], node.outputs[0]
        assert given is not None and given.shape is not None and made.shape is not None
        sizes: list[Any] = list(made.shape)
        inner: Any = given.shape[axis]
        found[node.name or ""] = int(inner) * math.prod(map(int, sizes))
    return found


def macs_on_htp(macs: Mapping[str, int], trace: Mapping[str, Any]) -> int:
    """MACs of the nodes that the compiler's trace maps to operators of the HTP.

    Args:
        macs: of the graph that was compiled.
        trace: `qnn_op_trace.json`.
    """
    mapped = {
        source["name"]
        for subgraph in trace["subgraph_traces"]
        for mapping in subgraph["op_mappings"]
        for source in mapping["sources"]
    }
    return sum(count for name, count in macs.items() if name in mapped)
