"""Checks that the inputs and outputs of the graphs on disk are those of the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import helper

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import OutputSpec, TensorSpec
from edgeinfinite.export.parity.checks import Check


def check_signatures(folder: Path, manifest: Manifest) -> list[Check]:
    """`io:GRAPH` for each graph: names, dtypes and shapes of inputs and outputs, in order.

    An axis that each call chooses (`T`) may be of fixed size in the file.
    """
    checks = []
    for name, spec in manifest.graphs.items():
        graph = onnx.load(folder / spec.file, load_external_data=False).graph
        same = _agree(graph.input, spec.inputs) and _agree(graph.output, spec.outputs)
        checks.append(Check(f"io:{name}", same, float(same)))
    return checks


def _agree(
    found: Sequence[onnx.ValueInfoProto], expected: Sequence[TensorSpec | OutputSpec]
) -> bool:
    if len(found) != len(expected):
        return False
    for value, spec in zip(found, expected, strict=True):
        tensor = value.type.tensor_type
        sizes = [axis.dim_value or axis.dim_param for axis in tensor.shape.dim]
        # The exporter chooses the names of free axes itself, so names aren't compared.
        fits = len(sizes) == len(spec.shape) and all(
            size == wanted or isinstance(size, str)
            for size, wanted in zip(sizes, spec.shape, strict=True)
        )
        dtype = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if value.name != spec.name or dtype != spec.dtype or not fits:
            return False
    return True
