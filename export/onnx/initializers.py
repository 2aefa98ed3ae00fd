"""Constants of a graph that several passes make."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir


def initializer(
    graph: ir.Graph, name: str, array: np.ndarray, dtype: ir.DataType | None = None
) -> ir.Value:
    """The constant of a name; made from the array if there is none yet.

    Args:
        graph: gets it.
        name: of the constant; equal ones, such as biases of zeros, are one for all layers.
        array: its numbers.
        dtype: how they are stored, where numpy has no such type; None: as the array's.
    """
    if name in graph.initializers:
        return graph.initializers[name]
    value = ir.Value(name=name, const_value=ir.tensor(array, dtype=dtype, name=name))
    value.dtype = dtype or ir.DataType.from_numpy(array.dtype)
    value.shape = ir.Shape(array.shape)
    graph.register_initializer(value)
    return value
