"""Codes of 5 and 6 bits on disk, codes of 8 bits for the operator, where that loses nothing.

MatMulNBits computes with 4 and 8 bits. A weight whose codes use 5 or 6 of the 8 is stored in two
planes, one of 4 bits and one of what is left. onnxruntime puts them together when it loads the
graph: it folds what depends on constants only. For a moment that takes about four bytes a weight of
memory, before the weights are packed (`docs/quantization.md`).

Letters: O outputs, n groups in a row, g group, r bits of a code in the upper plane.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from ml_dtypes import uint4

from edgeinfinite.export.onnx.initializers import initializer

_WIDTHS = (5, 6)

_OPSET = 21
"""The first whose Cast reads 4-bit tensors; nothing else that we use changed since 20."""


def narrow_codes(model: ir.Model) -> int:
    """Stores what fits into 5 or 6 bits so.

    Returns:
        How many weights.
    """
    narrowed = 0
    for node in list(model.graph):
        codes = node.inputs[1] if node.op_type == "MatMulNBits" else None
        if codes is None or len(codes.uses()) > 1:
            continue
        bits = code_bits(node)
        if bits in _WIDTHS:
            _split(model.graph, node, bits)
            narrowed += 1
    if narrowed:
        model.graph.opset_imports[""] = max(_OPSET, model.graph.opset_imports[""])
    return narrowed


def code_bits(node: ir.Node) -> int:
    """The fewest bits, of 4, 5, 6 and 8, that hold every code of a MatMulNBits."""
    bits = node.attributes["bits"].as_int()
    codes = node.inputs[1].const_value if node.inputs[1] is not None else None
    if bits != 8 or codes is None:
        return bits
    low, high = int(codes.numpy().min()), int(codes.numpy().max())
    for width in _WIDTHS:
        base = _base(node, width)
        if base <= low and high < base + 2**width:
            return width
    return bits


def planes(codes: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes `[O, I]` of 5 or 6 bits, as they are stored.

    Returns:
        The lower 4 bits of pairs, `[O, I / 2]`; what is left of so many as fit into a byte,
        `[O, I * r / 8]`; and for each such byte its codes' upper halves, `[256, 8 / r]`; all uint8.
    """
    rest = bits - 4
    groups = codes[:, None, :]
    high = _packed(groups >> 4, rest)[:, 0]
    low = (codes[:, 0::2] & 15) | (codes[:, 1::2] << 4)
    return np.ascontiguousarray(low), high, _table(rest, 0)


def _base(node: ir.Node, width: int) -> int:
    """The code that is stored as 0: around 128 where that stands for zero in every group."""
    has_zeros = len(node.inputs) > 3 and node.inputs[3] is not None
    return 0 if has_zeros else 128 - 2 ** (width - 1)


def _split(graph: ir.Graph, node: ir.Node, bits: int) -> None:
    codes = node.inputs[1]
    assert codes is not None and codes.const_value is not None and codes.name is not None
    base = _base(node, bits)
    values = codes.const_value.numpy() - np.uint8(base)  # [O, n, g]
    rest = bits - 4
    names = (f"{codes.name}_low", f"{codes.name}_high")
    low = initializer(graph, names[0], (values & 15).astype(uint4), ir.DataType.UINT4)
    high = initializer(graph, names[1], _packed(values >> 4, rest), ir.DataType.UINT8)
    table = initializer(graph, f"codes_table_{rest}_{base}", _table(rest, base))
    shape = initializer(graph, f"{codes.name}_shape", np.array(values.shape, np.int64))
    uint8, int32 = (ir.AttrInt64("to", int(to)) for to in (ir.DataType.UINT8, ir.DataType.INT32))
    nodes = list(_chain(low, high, table, shape, uint8, int32))
    for new in nodes:
        new.outputs[0].name = f"{codes.name}_{new.op_type.lower()}_{nodes.index(new)}"
    graph.insert_before(node, nodes)
    node.replace_input_with(1, nodes[-1].outputs[0])
    del graph.initializers[codes.name]


def _chain(
    low: ir.Value,
    high: ir.Value,
    table: ir.Value,
    shape: ir.Value,
    uint8: ir.Attr,
    int32: ir.Attr,
) -> Iterator[ir.Node]:
    """The nodes that give the codes; few of them, since each result lives while a graph loads."""
    yield (lower := ir.Node("", "Cast", [low], [uint8]))
    yield (index := ir.Node("", "Cast", [high], [int32]))
    yield (looked_up := ir.Node("", "Gather", [table, index.outputs[0]]))
    yield (upper := ir.Node("", "Reshape", [looked_up.outputs[0], shape]))
    yield ir.Node("", "BitwiseOr", [lower.outputs[0], upper.outputs[0]])


def _packed(values: np.ndarray, rest: int) -> np.ndarray:
    """`[O, n, g]` of r bits each into `[O, n, g * r / 8]` bytes, the first in the low bits."""
    count = 8 // rest
    parts = values.reshape(*values.shape[:2], -1, count)
    shifts = np.arange(0, 8, rest, dtype=np.uint8)
    return np.bitwise_or.reduce(parts << shifts, axis=-1, dtype=np.uint8)


def _table(rest: int, base: int) -> np.ndarray:
    """For every byte of the upper plane the upper halves of its codes, `[256, 8 / r]` uint8."""
    shifts = np.arange(0, 8, rest, dtype=np.uint8)
    fields = (np.arange(256, dtype=np.uint8)[:, None] >> shifts) & np.uint8(2**rest - 1)
    return (fields << np.uint8(4)) + np.uint8(base)
