"""Runs an artifact's graph once more with its inner values as outputs, for `parity.operations`.

The graph is the artifact's own file. A copy in memory names the inputs and outputs of its quantized
products as further outputs; the weights are mapped from the artifact's folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch.nn import functional

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import PREFILL
from edgeinfinite.export.onnx.operators import INT8_ACTIVATIONS
from edgeinfinite.export.onnx.quantize import QuantizedWeight
from edgeinfinite.export.parity.operations import Product
from edgeinfinite.runtime_py.state import State


class ObservedGraph:
    """`prefill_segment` with the inputs and outputs of its MatMulNBits.

    Args:
        folder: the artifact.
        manifest: its manifest.
        weights: what was quantized, by layer.

    Attributes:
        weights: as given.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, weights: Mapping[str, QuantizedWeight]
    ) -> None:
        self.weights = weights
        self._spec = manifest.graphs[PREFILL]
        model = onnx.load(folder / self._spec.file, load_external_data=False)
        self._nodes = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
        known = {value.name for value in model.graph.output}
        names = [name for node in self._nodes for name in (node.input[0], node.output[0])]
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
        return list(self._products(values))

    def wide_input(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """See `Observed`: with offsets, the sums over groups stand behind the input."""
        weight = self.weights[name]
        if weight.offsets is None:
            return x
        sums = x.unflatten(-1, (weight.scales.shape[1], weight.format.group)).sum(-1)
        return torch.cat((x, sums), -1)

    def expected(self, name: str, product: Product) -> torch.Tensor:
        """See `Observed`: MatMulNBits rounds its input to 8 bits, group by group."""
        weight = self.weights[name].widened()
        wide = weight.dequantized()
        padded = functional.pad(product.given, (0, wide.shape[1] - product.given.shape[2]))
        if product.rounds:
            groups = padded.unflatten(2, (-1, weight.format.group))
            largest = groups.abs().amax(3, keepdim=True)
            per_unit = torch.where(largest == 0, 0.0, 127.0 / largest)
            padded = ((groups * per_unit).round() * (largest / 127.0)).flatten(2)
        return padded @ wide.T

    def _products(self, values: dict[str, Any]) -> Iterator[Product]:
        for node in self._nodes:
            given, made = (
                torch.from_numpy(values[name].numpy()) for name in (node.input[0], node.output[0])
            )
            level = {a.name: a.i for a in node.attribute}.get("accuracy_level", 0)
            yield Product(
                _module_name(node.input[1]), given, made, rounds=level == INT8_ACTIVATIONS
            )


def _module_name(codes: str) -> str:
    """Of the layer, or the first of layers that are computed at once, by the name of its codes."""
    path = codes.partition(".codes")[0].removeprefix("model.")
    return path.replace(".module", "")  # `last_token.LastRow`
