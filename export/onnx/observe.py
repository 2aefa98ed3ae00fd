"""Runs an artifact's graph once more with its inner values as outputs, for `parity.operations`.

The graph is the artifact's own file. A copy in memory names the inputs and outputs of its quantized
products as further outputs and leaves their inputs unrounded; the weights are mapped from the
artifact's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import PREFILL
from edgeinfinite.export.onnx.operators import EXACT_ACTIVATIONS
from edgeinfinite.export.parity.operations import Product
from edgeinfinite.runtime_py.session.state import State

_OF_EXPERT = re.compile(r"\.codes\.\d+")
"""The codes of one of several experts. What they compute counts as between two products."""


class ObservedGraph:
    """`prefill_segment` with the inputs and outputs of its MatMulNBits.

    Args:
        folder: the artifact.
        manifest: its manifest.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._spec = manifest.graphs[PREFILL]
        model = onnx.load(folder / self._spec.file, load_external_data=False)
        for node in model.graph.node:
            for attribute in node.attribute:
                if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                    attribute.i = EXACT_ACTIVATIONS
        self._products = list(_products(model.graph))
        known = {value.name for value in model.graph.output}
        names = [name for product in self._products for name in product[1:]]
        self._names = [name for name in dict.fromkeys(names) if name not in known]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4
        where = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(where, str(folder))
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )

    def run(self, tokens: np.ndarray, state: State) -> list[Product]:
        """The products of one call, in the order of the graph.

        Args:
            tokens: `[1, T]` int64.
            state: before the call; its caches are changed as the call changes them.
        """
        binding = self._session.io_binding()
        shared = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
            for name, array in state.arrays.items()
        }
        for tensor in self._spec.inputs:
            if tensor.name == "tokens":
                binding.bind_cpu_input("tokens", tokens)
            else:
                binding.bind_ortvalue_input(tensor.name, shared[tensor.name])
        for output in self._spec.outputs:
            if output.alias is None:
                binding.bind_output(output.name)
            else:
                binding.bind_ortvalue_output(output.name, shared[output.alias])
        for name in self._names:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        bound = [output.name for output in self._spec.outputs] + self._names
        values = dict(zip(bound, binding.get_outputs(), strict=True))
        return [
            Product(name, *(torch.from_numpy(values[value].numpy()) for value in given_and_made))
            for name, *given_and_made in self._products
        ]


def _products(graph: onnx.GraphProto) -> Iterator[tuple[str, str, str]]:
    """Of every product the layer's name, its input and its output.

    A head that was split (`split_head`) is one product, whose output is that of the Concat.
    """
    nodes = [node for node in graph.node if node.op_type == "MatMulNBits"]
    products = [node for node in nodes if not _OF_EXPERT.search(node.input[1])]
    outputs = {node.output[0] for node in products}
    joined = {
        part: node.output[0]
        for node in graph.node
        if node.op_type == "Concat" and outputs.issuperset(node.input)
        for part in node.input
    }
    seen = set()
    for node in products:
        made = joined.get(node.output[0], node.output[0])
        if made not in seen:
            seen.add(made)
            yield _module_name(node.input[1]), node.input[0], made


def _module_name(codes: str) -> str:
    """Of the layer, or the first of layers that are computed at once, by the name of its codes."""
    path = codes.partition(".codes")[0].removeprefix("model.")
    return path.replace(".module", "")  # `last_token.LastRow`
