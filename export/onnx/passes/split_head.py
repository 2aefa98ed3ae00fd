"""Splits the LM head of a large vocabulary into products of some rows each.

onnxruntime maps a weight, packs it into memory of its own and closes the mapping, one product after
another in the order of the graph. So the last product is in memory twice while everything else is
in memory once, and that is the peak of loading: a vocabulary of 262,144 makes the head two thirds
of Gemma 3 270M. In parts, only a part is in memory twice. The parts are ranges of the bytes that a
tied embedding reads, and every output is the sum that it was.

Letters: V vocabulary.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx_ir as ir

from edgeinfinite.export.onnx.files import Rows

LARGE_BYTES = 32 * 2**20
"""Heads with more bytes of codes are split. SmolLM2's 27 MiB aren't: its peak is elsewhere."""

PART_BYTES = 16 * 2**20
"""Of a part's codes, at most, but for the rows that round it."""

_ROWS = 64
"""Parts have a multiple of these rows: whole cache lines, and whole blocks of onnxruntime's."""

_ROW_INPUTS = {"Cast": (0,), "BitwiseOr": (0, 1), "Gather": (1,), "Reshape": (0,)}
"""What `halve_scales` and `narrow_codes` put behind constants, and the inputs with a row for each
word; a Reshape's other input has the shape."""


def split_head(model: ir.Model) -> int:
    """Splits the last quantized product, if its codes take more than `LARGE_BYTES`.

    Returns:
        Into how many parts; 0 if it stays one product.
    """
    products = [node for node in model.graph if node.op_type == "MatMulNBits"]
    if not products or codes_bytes(products[-1]) <= LARGE_BYTES:
        return 0
    head = products[-1]
    if not all(value is None or _has_rows(value) for value in head.inputs[1:]):
        return 0
    return _split(model.graph, head)


def codes_bytes(node: ir.Node) -> int:
    """Bytes of the codes that a MatMulNBits packs."""
    rows, columns, bits, group = (
        node.attributes[name].as_int() for name in ("N", "K", "bits", "block_size")
    )
    return rows * -(-columns // group) * group * bits // 8


def _has_rows(value: ir.Value) -> bool:
    if value.const_value is not None:
        return True
    node = value.producer()
    if node is None or node.op_type not in _ROW_INPUTS:
        return False
    given = [node.inputs[index] for index in _ROW_INPUTS[node.op_type]]
    return all(one is not None and _has_rows(one) for one in given)


def _split(graph: ir.Graph, head: ir.Node) -> int:
    words, whole = head.attributes["N"].as_int(), head.outputs[0]
    count = -(-codes_bytes(head) // PART_BYTES)
    step = -(-words // count // _ROWS) * _ROWS
    ends = [*range(0, words, step), words]
    parts = []
    for number, (start, end) in enumerate(pairwise(ends)):
        rows = _RowsOf(graph, head, slice(start, end), number)
        inputs = [head.inputs[0], *(value and rows.of(value) for value in head.inputs[1:])]
        attributes = dict(head.attributes) | {"N": ir.AttrInt64("N", end - start)}
        part = ir.Node("com.microsoft", "MatMulNBits", inputs, attributes.values(), version=1)
        part.outputs[0].name, part.outputs[0].type = f"{whole.name}_rows_{number}", whole.type
        graph.insert_before(head, part)
        parts.append(part.outputs[0])
    joined = ir.Node("", "Concat", parts, [ir.AttrInt64("axis", -1)])
    graph.insert_before(head, joined)
    output = joined.outputs[0]
    output.type, output.shape = whole.type, whole.shape
    whole.replace_all_uses_with(output, replace_graph_outputs=True)
    output.name, whole.name = whole.name, f"{whole.name}_whole"
    graph.remove(head, safe=True)
    return len(parts)


class _RowsOf:
    """Values with some of the rows of others.

    Args:
        graph: new nodes and constants go here.
        before: where the nodes go.
        rows: which.
        number: of the part, for names.
    """

    def __init__(self, graph: ir.Graph, before: ir.Node, rows: slice, number: int) -> None:
        self._graph, self._before = graph, before
        self._rows, self._number = rows, number

    def of(self, value: ir.Value) -> ir.Value:
        """Rows of a constant, or of what is computed from constants."""
        name = f"{value.name}_rows_{self._number}"
        if value.const_value is not None:
            return self._constant(Rows(value.const_value, self._rows, name))
        old = value.producer()
        assert old is not None
        inputs = list(old.inputs)
        for index in _ROW_INPUTS[old.op_type]:
            inputs[index] = self.of(_known(inputs[index]))
        if old.op_type == "Reshape":
            inputs[1] = self._shape(_known(inputs[1]), f"{name}_shape")
        new = ir.Node("", old.op_type, inputs, old.attributes.values())
        new.outputs[0].name, new.outputs[0].type = name, value.type
        self._graph.insert_before(self._before, new)
        return new.outputs[0]

    def _shape(self, shape: ir.Value, name: str) -> ir.Value:
        assert shape.const_value is not None
        sizes = shape.const_value.numpy().copy()
        sizes[0] = self._rows.stop - self._rows.start
        return self._constant(ir.tensor(sizes.astype(np.int64), name=name))

    def _constant(self, tensor: ir.TensorProtocol) -> ir.Value:
        value = ir.Value(name=tensor.name, const_value=tensor)
        value.dtype, value.shape = tensor.dtype, ir.Shape(tensor.shape.numpy())
        self._graph.register_initializer(value)
        return value


def _known(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value
