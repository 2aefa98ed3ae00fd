"""Fewer passes over a whole cache, which a compression takes apart and puts together again.

Each node reads and writes every slot, so a compression takes as long as it has nodes of that size.
Bytes become floats in one pass instead of two, heads are renamed instead of copied, and bounds are
checked at once. None of it changes a bit.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgeinfinite.export.onnx.initializers import initializer

_OPSET = 21
"""From it on DequantizeLinear has blocks."""


def fewer_passes(model: ir.Model) -> dict[str, int]:
    """Rewrites the graph of a compression.

    Returns:
        How many of which were rewritten.
    """
    graph, found = model.graph, {"dequantized": 0, "renamed": 0, "clipped": 0}
    for node in list(graph):
        if node.domain != "":
            continue
        if node.op_type == "Mul":
            found["dequantized"] += _dequantized(graph, node)
        elif node.op_type == "Transpose":
            found["renamed"] += _renamed(graph, node)
        elif node.op_type == "Min":
            found["clipped"] += _clipped(graph, node)
    if found["dequantized"]:
        graph.opset_imports[""] = max(_OPSET, graph.opset_imports[""])
    return found


def _dequantized(graph: ir.Graph, node: ir.Node) -> bool:
    """`codes.float() * scale`, codes `[1, K, C, D]` int8 and scale `[K, 1, D]`, as one operator.

    A block of as many slots as there are has one scale for each head and channel.
    """
    floats, scale = node.inputs
    cast = floats.producer() if floats is not None else None
    if cast is None or cast.op_type != "Cast" or scale is None or scale.const_value is None:
        return False
    (codes,) = cast.inputs
    sizes = _sizes(codes)
    if codes is None or codes.dtype != ir.DataType.INT8 or len(sizes) != 4:
        return False
    heads, slots, channels = sizes[1:]
    steps = scale.const_value.numpy()
    if sizes[0] != 1 or steps.dtype != np.float32 or steps.shape != (heads, 1, channels):
        return False
    blocks = initializer(graph, f"{scale.name}_blocks", steps[None])
    how = [ir.AttrInt64("axis", 2), ir.AttrInt64("block_size", slots)]
    _replace(graph, node, ir.Node("", "DequantizeLinear", [codes, blocks], how))
    if not cast.outputs[0].uses():
        graph.remove(cast, safe=True)
    return True


def _renamed(graph: ir.Graph, node: ir.Node) -> bool:
    """A transpose that only moves axes of one element: a reshape, which copies nothing."""
    source, sizes = node.inputs[0], _sizes(node.outputs[0])
    order = node.attributes["perm"].as_ints()
    long = [axis for axis, size in zip(order, sizes, strict=False) if size != 1]
    if not sizes or long != sorted(long):
        return False
    name = "sizes_" + "_".join(map(str, sizes))
    shape = initializer(graph, name, np.array(sizes, np.int64))
    _replace(graph, node, ir.Node("", "Reshape", [source, shape]))
    return True


def _clipped(graph: ir.Graph, node: ir.Node) -> bool:
    """`min(max(x, low), high)` of two constants as one operator."""
    if len(node.inputs) != 2:
        return False
    raised, high = node.inputs
    lower = raised.producer() if raised is not None else None
    if lower is None or lower.op_type != "Max" or lower.domain != "" or len(lower.inputs) != 2:
        return False
    x, low = lower.inputs
    if any(
        bound is None or bound.const_value is None or bound.const_value.shape.numpy() != ()
        for bound in (low, high)
    ):
        return False
    _replace(graph, node, ir.Node("", "Clip", [x, low, high]))
    if not lower.outputs[0].uses():
        graph.remove(lower, safe=True)
    return True


def _sizes(value: ir.Value | None) -> list[int]:
    """A value's sizes; empty where one isn't fixed."""
    if value is None or value.shape is None:
        return []
    sizes = [size for size in value.shape if isinstance(size, int)]
    return sizes if len(sizes) == len(value.shape) else []


def _replace(graph: ir.Graph, node: ir.Node, new: ir.Node) -> None:
    """Puts a node of one output in another's place."""
    old, made = node.outputs[0], new.outputs[0]
    made.type, made.shape = old.type, old.shape
    graph.insert_before(node, new)
    name = old.name
    old.replace_all_uses_with(made, replace_graph_outputs=True)
    old.name, made.name = f"{name}_old", name
    graph.remove(node, safe=True)
