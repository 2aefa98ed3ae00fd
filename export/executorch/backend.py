"""The back end itself: exports an attached model as one `.pte` with the three methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch.export import ExportedProgram
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import COMPRESS
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import ExportedGraphs, Progress, WeightRequest
from edgeinfinite.export.executorch.exact.parity import exact_parity
from edgeinfinite.export.executorch.graphs import Graph, graphs_of, state_of
from edgeinfinite.export.executorch.groups import SCALE_TYPE, take_over
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.passes.graph_tools import finish
from edgeinfinite.export.executorch.passes.half_constants import half_constants
from edgeinfinite.export.executorch.passes.rope_tables import rope_tables
from edgeinfinite.export.executorch.quantize import (
    held,
    quantized,
    reference,
    rounded,
    stored_bytes,
)
from edgeinfinite.export.executorch.recurrences import recurrences
from edgeinfinite.export.executorch.report import describe
from edgeinfinite.export.executorch.signature import check_signatures
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.weight_menu import WeightMenu
from edgeinfinite.models.architecture import Architecture, architecture_of
from edgeinfinite.models.attach import config_of
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.models.weights.grouped_weight import GroupedWeight
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

PROGRAM_FILE = "model.pte"


class ExecuTorchBackend:
    """See `export.backend.Backend`."""

    name = "executorch"
    cache_types = ("float32", INT8_CACHE)
    menu = WeightMenu(
        formats=(WeightFormat(4), WeightFormat(4, offsets=True), WeightFormat(8)),
        embedding_formats=(WeightFormat(8),),  # in 4, a tied LM head would be stored beside it
        scale_type=SCALE_TYPE,
        leading_shares=tuple(sixteenth / 16 for sixteenth in (1, 2, 3, 4, 6, 8, 12)),
        offsets_read=100_000,  # measured: as long as 70,000 (docs/develop/quantization.md)
        rounds_by_token=True,
    )
    graph_bytes = 36_000  # the demo model's: 31,000 under carry, 33,000 under reencode
    keeps_angles = True
    tools = ("executorch", "torchao")

    def check_architecture(self, facts: Architecture, geometry: Geometry) -> None:
        """See `export.backend.Backend.check_architecture`."""
        if facts.experts:
            raise EdgeInfiniteError(
                f"the back end executorch doesn't run experts yet, as {facts.name} has them "
                f"({facts.experts}); use --backend onnx"
            )

    def export_graphs(
        self, request: WeightRequest, folder: Path, target: str, progress: Progress
    ) -> ExportedGraphs:
        """See `export.backend.Backend.export_graphs`."""
        model = request.model
        self.check_architecture(architecture_of(model), config_of(model).geometry)
        shape = ModelShape.of(model)
        state = state_of(shape)
        progress("quantizing", 0.0)
        twin, quantization = quantized(model, request.recipe, request.integers)
        graphs = graphs_of(twin, state)
        programs, found = {}, {}
        with rope_tables(twin, shape.geometry.capacity), recurrences(twin):
            for index, graph in enumerate(graphs):
                progress(f"tracing {graph.name}", 0.05 + 0.1 * index)
                programs[graph.name] = _trace(graph)
                found[graph.name] = run_passes(programs[graph.name])
        if COMPRESS in programs:
            found[COMPRESS]["half_constants"] = half_constants(programs[COMPRESS])
            finish(programs[COMPRESS])
        progress("lowering to XNNPACK", 0.35)
        manager = lower(programs)
        details = describe(manager, found)  # before writing, which changes the graphs
        progress("writing the program", 0.9)
        write_program(manager, folder / PROGRAM_FILE)
        return ExportedGraphs(
            graphs={graph.name: graph.spec(PROGRAM_FILE) for graph in graphs},
            state=state,
            quantization=quantization,
            details=details,
        )

    def weights_bytes(self, request: WeightRequest) -> int:
        """See `export.backend.Backend.weights_bytes`."""
        return stored_bytes(request.model, request.recipe, request.integers)

    def rounded(
        self, weight: torch.Tensor, form: WeightFormat, *, embedding: bool
    ) -> tuple[torch.Tensor, int]:
        """See `Backend.rounded`."""
        return rounded(weight, replace(form, bits=8) if embedding else form)

    def held(self, weight: GroupedWeight, *, embedding: bool) -> tuple[torch.Tensor, int] | None:
        """See `Backend.held`: 4 bits only, more become rows of 8."""
        if embedding or weight.bits != 4:
            return None
        return held(take_over(weight))

    def check_signatures(self, folder: Path, manifest: Manifest) -> list[Check]:
        """See `export.backend.Backend.check_signatures`."""
        return check_signatures(folder, manifest)

    def quantized_reference(self, request: WeightRequest) -> PreTrainedModel:
        """See `export.backend.Backend.quantized_reference`; it quantizes activations as well."""
        return reference(request.model, request.recipe, request.integers)

    def exact_parity(
        self,
        folder: Path,
        manifest: Manifest,
        reference: TorchEngine,
        states: Sequence[State],
        tokens: Iterator[int],
    ) -> list[Check]:
        """See `Backend.exact_parity`."""
        return exact_parity(folder, manifest, reference, states, tokens)


def _trace(graph: Graph) -> ExportedProgram:
    with torch.no_grad():
        return torch.export.export(
            graph,
            graph.example_inputs(),
            dynamic_shapes=graph.dynamic_shapes(),
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
