"""The ONNX back end for Snapdragon's HTP: float16 numbers, weights of 16, 8 or 4 bits."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import NpuInfo
from edgeinfinite.artifact.socs import Soc
from edgeinfinite.artifact.tensors import COMPRESS, DECODE, PREFILL, GraphSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import ExportedGraphs, Progress, WeightRequest
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.onnx.backend import FILES, OnnxBackend, info_of, operators_of
from edgeinfinite.export.onnx.files import WeightsFile
from edgeinfinite.export.onnx.passes import shared_copy
from edgeinfinite.export.onnx.passes.half_precision import halve_constants
from edgeinfinite.export.onnx.passes.memory_gate import absorb_gates
from edgeinfinite.export.onnx.passes.quantized_weights import QuantizedWeights, swap_quantized
from edgeinfinite.export.onnx.passes.rms_norm import fuse_rms_norms
from edgeinfinite.export.onnx.qnn.compile import compile_graphs
from edgeinfinite.export.onnx.qnn.graphs import (
    TOKENS,
    QnnDecode,
    QnnPrefill,
    compress_graph,
    state_of,
)
from edgeinfinite.export.onnx.qnn.macs import macs_by_node
from edgeinfinite.export.onnx.qnn.magnitudes import check_magnitudes
from edgeinfinite.export.onnx.qnn.passes import (
    code_embedding,
    fill_groups,
    newest_row_only,
    tabulate_rotary,
)
from edgeinfinite.export.onnx.qnn.state import QnnState
from edgeinfinite.export.onnx.trace import trace
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.weight_menu import WeightMenu
from edgeinfinite.models.architecture import Architecture


class QnnBackend(OnnxBackend):
    """See `export.backend.Backend`.

    Args:
        soc: the chip to compile for.
    """

    cache_types: tuple[str, ...] = ("float16",)
    menu = WeightMenu(
        formats=(
            WeightFormat(4, 32, symmetric=False),
            WeightFormat(4, 64, symmetric=False),
            WeightFormat(4),
            WeightFormat(8),
        ),
        embedding_formats=(WeightFormat(8),),
        scale_type=OnnxBackend.menu.scale_type,
    )
    tools: tuple[str, ...] = (*OnnxBackend.tools, "onnxruntime-qnn")

    def __init__(self, soc: Soc) -> None:
        super().__init__()
        self.soc = soc

    def check_architecture(self, facts: Architecture, geometry: Geometry) -> None:
        """See `Backend.check_architecture`; plain operators attend with heads of any size."""
        if facts.recurrent:
            raise EdgeInfiniteError(
                f"graphs of fixed shape read a filled-up chunk, which {facts.name}'s states beside "
                "its KV caches would keep; export it for the CPU"
            )
        if facts.readers or facts.heads:
            raise EdgeInfiniteError(
                f"{facts.name} has layers that share a cache or differ in heads, which graphs for "
                "the NPU don't read yet; export it for the CPU"
            )
        if facts.experts:
            raise EdgeInfiniteError(
                f"graphs of fixed shape don't run experts yet, as {facts.name} has them "
                f"({facts.experts}); export it for the CPU"
            )
        if any(layer.sinks for layer in facts.layers):
            raise EdgeInfiniteError(
                f"graphs of fixed shape don't attend with learned sinks yet, as {facts.name} does; "
                "export it for the CPU"
            )

    def export_graphs(
        self, request: WeightRequest, folder: Path, target: str, progress: Progress
    ) -> ExportedGraphs:
        """See `Backend.export_graphs`; the graphs' own files run on the CPU too."""
        model = request.model
        shape = ModelShape.of(model)
        progress("quantizing", 0.0)
        check_magnitudes(model)
        weights = self._quantized(request)
        operators: dict[str, dict[str, int]] = {}
        macs: dict[str, dict[str, int]] = {}
        graphs: dict[str, GraphSpec] = {}
        with WeightsFile(folder) as file:
            for name, share in ((PREFILL, 0.2), (DECODE, 0.4)):
                progress(f"tracing {name}", share)
                traced, graphs[name] = _trace(model, weights, name)
                macs[name] = macs_by_node(traced)
                operators[name] = operators_of(traced)
                file.save(traced, FILES[name])
            compress = compress_graph(model)
            if compress is not None:
                traced = trace(compress)
                halve_constants(traced)
                operators[COMPRESS] = operators_of(traced)
                file.save(traced, FILES[COMPRESS])
                graphs[COMPRESS] = compress.spec(FILES[COMPRESS])
        progress(f"compiling for {self.soc.name}", 0.6)
        binary, compiled = compile_graphs(folder, self.soc, macs)
        npu = NpuInfo(
            soc=self.soc.name,
            soc_model=self.soc.model,
            htp_arch=self.soc.arch,
            binary=binary,
            files={name: graph.file for name, graph in compiled.items()},
        )
        details: dict[str, Any] = {
            "operators": operators,
            "compiled": {name: graph.figures() for name, graph in compiled.items()},
        }
        quantization = info_of(model, request.recipe, weights)
        return ExportedGraphs(graphs, state_of(shape), quantization, details, npu)


def _trace(
    model: PreTrainedModel, weights: QuantizedWeights, name: str
) -> tuple[ir.Model, GraphSpec]:
    """One graph over tokens, and its signature."""
    shape = ModelShape.of(model)
    swapped = shared_copy(model)
    gates = absorb_gates(swapped)
    swap_quantized(swapped, weights)
    code_embedding(swapped, weights)
    fill_groups(swapped)
    fuse_rms_norms(swapped)
    newest = newest_row_only(swapped)
    tabulate_rotary(swapped, shape.geometry.capacity, TOKENS)
    longest = shape.geometry.longest_layer
    new_state = partial(QnnState, gates=gates, longest_layer=longest)
    graph: QnnPrefill | QnnDecode
    if name == PREFILL:
        graph = QnnPrefill(swapped, new_state, min(TOKENS, shape.geometry.segment_length), newest)
    else:
        graph = QnnDecode(swapped, new_state)
    traced = trace(graph.eval())
    RemoveUnusedNodesPass()(traced)
    return traced, graph.spec(FILES[name])
