"""Merges quantized linear layers over one input: Q with K and V, gate with up.

One MatMulNBits rounds the input to 8 bits once and wakes the threads once. A Split separates the
results.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import onnx_ir as ir

from edgeinfinite.export.onnx.initializers import initializer
from edgeinfinite.export.onnx.passes.narrow_codes import code_bits

_TENSORS = (1, 2, 3, 5)
"""Inputs of MatMulNBits that have one row for each output: codes, scales, zeros, bias."""


def merge_linears(model: ir.Model) -> int:
    """Merges all such layers of a graph.

    Returns:
        How many nodes were merged away.
    """
    groups: dict[tuple[object, ...], list[ir.Node]] = defaultdict(list)
    for node in model.graph:
        if node.op_type == "MatMulNBits":
            groups[_key(node)].append(node)
    merged = 0
    for nodes in groups.values():
        if len(nodes) > 1 and all(_rows_known(node) for node in nodes):
            _merge(model.graph, nodes)
            merged += len(nodes) - 1
    return merged


def _key(node: ir.Node) -> tuple[object, ...]:
    """Equal for nodes that may be merged: same input, same format, stored in as many bits."""
    formats = tuple(node.attributes[name].as_int() for name in ("K", "bits", "block_size"))
    given = tuple(_input(node, index) is not None for index in _TENSORS)
    return (node.inputs[0], formats, given, code_bits(node))


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _rows_known(node: ir.Node) -> bool:
    tensors = [_input(node, index) for index in _TENSORS]
    return all(value is None or value.const_value is not None for value in tensors)


def _merge(graph: ir.Graph, nodes: list[ir.Node]) -> None:
    first = nodes[0]
    inputs: list[ir.Value | None] = [first.inputs[0], None, None, None, None, None]
    for index in _TENSORS:
        if _input(first, index) is not None:
            inputs[index] = _joined(graph, [node.inputs[index] for node in nodes])
    while inputs[-1] is None:
        inputs.pop()
    sizes = [node.attributes["N"].as_int() for node in nodes]
    attributes = dict(first.attributes) | {"N": ir.AttrInt64("N", sum(sizes))}
    linear = ir.Node("com.microsoft", "MatMulNBits", inputs, attributes.values(), version=1)
    name = f"{first.outputs[0].name}_merged"
    linear.outputs[0].name, linear.outputs[0].type = name, first.outputs[0].type
    if first.outputs[0].shape is not None:
        linear.outputs[0].shape = ir.Shape([*first.outputs[0].shape[:-1], sum(sizes)])
    lengths = initializer(graph, f"{name}_sizes", np.array(sizes, np.int64))
    split = ir.Node(
        "",
        "Split",
        [linear.outputs[0], lengths],
        [ir.AttrInt64("axis", -1)],
        num_outputs=len(nodes),
    )
    graph.insert_before(first, [linear, split])
    for node, output in zip(nodes, split.outputs, strict=True):
        old = node.outputs[0]
        output.name, output.type, output.shape = f"{old.name}_part", old.type, old.shape
        old.replace_all_uses_with(output)
        graph.remove(node, safe=True)


def _joined(graph: ir.Graph, values: list[ir.Value | None]) -> ir.Value:
    """One initializer with all rows; old ones that nothing else reads are dropped later."""
    known = [value for value in values if value is not None]
    arrays = [value.const_value.numpy() for value in known if value.const_value is not None]
    name = f"{known[0].name}_merged"
    while name in graph.initializers:  # layers whose tensors are equal (biases of zeros) share them
        name += "_again"
    return initializer(graph, name, np.concatenate(arrays))
