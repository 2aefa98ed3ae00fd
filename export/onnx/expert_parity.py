"""Compares the product of every single expert with the reference's, on a row of its own.

A text of a few tokens goes through some of the experts only, so what the whole graph computes says
nothing of the others. Here the artifact's own nodes of one projection, from the Split of the rows
to the Concat, get a row for each expert.

Letters: E experts, I inputs, O outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import PREFILL
from edgeinfinite.export.onnx.operators import EXACT_ACTIVATIONS
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.operations import PRODUCT_LIMIT
from edgeinfinite.models.experts import as_rows

CHECK = "parity:experts"
PROJECTIONS = "edgeinfinite_projections"
"""The module in which `passes/experts.py` holds the tensors of all experts of a layer."""

_TENSOR = re.compile(rf"^model\.(.+)\.{PROJECTIONS}\.(\w+)\.(?:codes|weight)\.\d+")
_PRODUCTS = ("MatMulNBits", "Gemm")


def check_experts(folder: Path, manifest: Manifest, reference: Any) -> list[Check]:
    """`parity:experts`: the largest relative error of an expert's product; none without experts.

    Args:
        folder, manifest: the artifact.
        reference: a model over the same weights, in transformers' own modules.
    """
    graph = onnx.load(folder / manifest.graphs[PREFILL].file, load_external_data=False)
    made_by = {name: node for node in graph.graph.node for name in node.output}
    errors: list[float] = []
    for node in graph.graph.node:
        products = [made_by.get(name) for name in node.input] if node.op_type == "Concat" else []
        if products and all(one and one.op_type in _PRODUCTS for one in products):
            found = _TENSOR.match(products[0].input[1])  # type: ignore[union-attr]
            if found:
                # `last_token` may have put a module around the last layer's.
                part = reference.get_submodule(found[1].replace(".module", ""))
                errors += _errors(graph, folder, node, products, part, found[2])
    if not errors:
        return []
    worst = float(np.max(errors))  # a NaN stays one
    return [Check(CHECK, worst <= PRODUCT_LIMIT, worst, PRODUCT_LIMIT)]


def _errors(
    whole: onnx.ModelProto, folder: Path, concat: Any, products: list[Any], part: Any, name: str
) -> Iterator[float]:
    """The relative error of each expert's product."""
    weight = as_rows(part, getattr(part, name)).detach().float()
    by_expert = weight.unflatten(0, (part.num_experts, -1))  # [E, O, I]
    rows = torch.randn(
        len(by_expert), by_expert.shape[2], generator=torch.Generator().manual_seed(0)
    )
    wanted = torch.einsum("eoi,ei->eo", by_expert, rows)
    bias = getattr(part, f"{name}_bias", None)
    if bias is not None:
        wanted = wanted + bias.detach()
    made = _run(whole, folder, concat, products, rows.numpy())
    if made.shape != tuple(wanted.shape):
        yield float("nan")
        return
    for one, other in zip(torch.from_numpy(made), wanted, strict=True):
        yield float((one - other).norm() / other.norm().clamp_min(1e-9))


def _run(
    whole: onnx.ModelProto, folder: Path, concat: Any, products: list[Any], rows: np.ndarray
) -> np.ndarray:
    """`[E, O]`: what the nodes from the Split to the Concat make of `rows` `[E, I]`, unrounded."""
    made_by = {name: node for node in whole.graph.node for name in node.output}
    split = made_by[products[0].input[0]]
    pending = [name for node in products for name in node.input[1:] if name]
    chosen = {id(node): node for node in (split, *products, concat)}
    while pending:  # casts of scales, say
        node = made_by.get(pending.pop())
        if node is not None and id(node) not in chosen:
            chosen[id(node)] = node
            pending += node.input
    nodes = [node for node in whole.graph.node if id(node) in chosen]
    used = {name for node in nodes for name in node.input}
    model = onnx.ModelProto()
    model.CopyFrom(whole)
    del model.graph.node[:], model.graph.input[:], model.graph.output[:]
    for node in nodes:
        copied = model.graph.node.add()
        copied.CopyFrom(node)
        for attribute in copied.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = EXACT_ACTIVATIONS
    kept = [value for value in whole.graph.initializer if value.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    shapes = {split.input[0]: rows.shape, split.input[1]: (len(products),)}
    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.INT64)
    for (given, shape), kind in zip(shapes.items(), kinds, strict=True):
        model.graph.input.append(onnx.helper.make_tensor_value_info(given, kind, list(shape)))
    model.graph.output.append(onnx.ValueInfoProto(name=concat.output[0]))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    where = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(where, str(folder))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    sizes = np.ones(len(products), np.int64)
    made: np.ndarray = session.run(None, {split.input[0]: rows, split.input[1]: sizes})[0]
    return made
