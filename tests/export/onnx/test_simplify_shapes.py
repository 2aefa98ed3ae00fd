"""Slices of everything go, and no others."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgeinfinite.export.onnx.passes.simplify_shapes import simplify_shapes


def sliced(shape: list[object], result: list[object], step: int) -> ir.Model:
    """A graph that slices the axis 1 from one end to the other and adds the result to itself."""
    first, last = (0, 2**62) if step > 0 else (-1, -(2**62))
    constants = {"start": first, "end": last, "axis": 1, "step": step}
    nodes = [
        helper.make_node("Slice", ["x", *constants], ["part"]),
        helper.make_node("Add", ["part", "part"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(np.array([value]), name) for name, value in constants.items()],
        value_info=[helper.make_tensor_value_info("part", TensorProto.FLOAT, result)],
    )
    return ir.from_proto(helper.make_model(graph))


@pytest.mark.parametrize(
    ("shape", "result", "step", "removed"),
    [
        ([1, "T", 4], [1, "T", 4], 1, 1),
        ([1, "T", 4], [1, "T", 4], -1, 0),
        ([1, "T", 4], [1, "U", 4], 1, 0),
        ([1, None, 4], [1, None, 4], 1, 0),
    ],
    ids=["everything", "backwards", "another size", "an unknown size"],
)
def test_a_slice_goes_only_where_it_returns_what_it_is_given(shape, result, step, removed):
    model = sliced(shape, result, step)
    assert simplify_shapes(model) == removed
    assert len([node for node in model.graph if node.op_type == "Slice"]) == 1 - removed
