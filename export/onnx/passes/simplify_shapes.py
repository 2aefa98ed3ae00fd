"""Removes reshapes and transposes that undo each other; heads-first code has many of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir


def simplify_shapes(model: ir.Model) -> int:
    """Repeats the rules until nothing is left to remove.

    Returns:
        How many nodes were removed.
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
    if _with_constant_shape(node):
        return True
    if _same_shape(source, output) and _bypass(node, source):
        return True
    below = source.producer()
    if below is None or below.op_type != "Reshape" or below.domain != "":
        return False
    if 0 in _constant(node.inputs[1]):  # 0 copies a size from the input, which would change
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


def _mul(node: ir.Node) -> bool:
    """x * 1, which the exporter writes for parameters that have no effect."""
    value, factor = node.inputs
    tensor = None if factor is None else factor.const_value
    if value is None or tensor is None or tensor.size != 1 or len(tensor.shape):
        return False
    return float(tensor.numpy()) == 1.0 and _bypass(node, value)


def _slice(node: ir.Node) -> bool:
    """A slice of everything, such as the newest T of T tokens."""
    source, steps = node.inputs[0], node.inputs[4] if len(node.inputs) > 4 else None
    forward = steps is None or (
        steps.const_value is not None and bool((steps.const_value.numpy() == 1).all())
    )
    if source is None or source.shape is None or not forward:
        return False
    named = all(isinstance(size, int) or size.value is not None for size in source.shape)
    return named and _same_shape(source, node.outputs[0]) and _bypass(node, source)


_RULES: dict[str, Callable[[ir.Node], bool]] = {
    "Mul": _mul,
    "Reshape": _reshape,
    "Slice": _slice,
    "Transpose": _transpose,
}


def _with_constant_shape(node: ir.Node) -> bool:
    """Replaces a computed shape by a constant, if at most one axis is free."""
    shape, target = node.outputs[0].shape, node.inputs[1]
    if shape is None or target is None or target.const_value is not None:
        return False
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    if sizes.count(-1) > 1 or 0 in sizes or node.graph is None:
        return False
    name = "shape_" + "_".join(str(size).replace("-1", "free") for size in sizes)
    known = node.graph.initializers.get(name)
    if known is None:
        known = ir.Value(name=name, const_value=ir.tensor(np.array(sizes, np.int64), name=name))
        known.dtype, known.shape = ir.DataType.INT64, ir.Shape([len(sizes)])
        node.graph.register_initializer(known)
    node.replace_input_with(1, known)
    return True


def _bypass(node: ir.Node, value: ir.Value) -> bool:
    """Lets all readers of the node's output read `value`; outputs of the graph are kept."""
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
