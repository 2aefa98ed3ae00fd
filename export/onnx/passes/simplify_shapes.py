"""Removes reshapes and transposes that undo each other, which heads-first code is full of."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir


def simplify_shapes(model: ir.Model) -> int:
    """Works on a graph until nothing is left to remove.

    Returns:
        How many nodes went.
    """
    graph = model.graph
    before = len(graph)
    changed = True
    while changed:
        changed = False
        for node in list(graph):
            rule = _RULES.get(node.op_type) if node.domain == "" else None
            if rule is not None and rule(node):
                changed = True
        for node in reversed(list(graph)):
            unused = all(not o.uses() and not o.is_graph_output() for o in node.outputs)
            if unused:
                graph.remove(node, safe=True)
    return before - len(graph)


def _reshape(node: ir.Node) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    assert source is not None
    if _same_shape(source, output) and _bypass(node, source):
        return True
    below = source.producer()
    if below is None or below.op_type != "Reshape" or below.domain != "":
        return False
    if 0 in _constant(node.inputs[1]):  # copies a size from its input, which would be another one
        return False
    node.replace_input_with(0, below.inputs[0])
    return True


def _transpose(node: ir.Node) -> bool:
    source = node.inputs[0]
    below = source.producer() if source is not None else None
    if below is None or below.op_type != "Transpose" or below.domain != "":
        return False
    first, second = _permutation(below), _permutation(node)
    if [first[axis] for axis in second] != list(range(len(first))):
        return False
    origin = below.inputs[0]
    return origin is not None and _bypass(node, origin)


_RULES: dict[str, Callable[[ir.Node], bool]] = {"Reshape": _reshape, "Transpose": _transpose}


def _bypass(node: ir.Node, value: ir.Value) -> bool:
    """Lets all that reads the node's output read `value`; a graph's output keeps its name."""
    output = node.outputs[0]
    if output.is_graph_output() or not output.uses():
        return False
    output.replace_all_uses_with(value)
    return True


def _same_shape(one: ir.Value, other: ir.Value) -> bool:
    return (
        one.shape is not None and other.shape is not None and list(one.shape) == list(other.shape)
    )


def _constant(value: ir.Value | None) -> list[int]:
    tensor = None if value is None else value.const_value
    return [0] if tensor is None else [int(size) for size in tensor.numpy()]


def _permutation(node: ir.Node) -> list[int]:
    return list(node.attributes["perm"].as_ints())
