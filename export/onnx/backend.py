"""The ONNX back end: one graph for prefill and decode, one for compressing, one weights file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.looked_up import LOOKED_UP
from edgeinfinite.artifact.manifest import Manifest, QuantizationInfo, cache_type_of, soc_of
from edgeinfinite.artifact.tensors import COMPRESS, DECODE, PREFILL
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import ExportedGraphs, Progress, WeightRequest
from edgeinfinite.export.graphs.carry import CarryMemory
from edgeinfinite.export.graphs.compress import CompressMemory
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.sparse_activations import constant_quantiles
from edgeinfinite.export.graphs.state import cache_outputs
from edgeinfinite.export.graphs.tokens import DecodeStep, PrefillSegment
from edgeinfinite.export.onnx.expert_parity import check_experts
from edgeinfinite.export.onnx.files import WeightsFile, fix_tokens
from edgeinfinite.export.onnx.looked_up import looked_up_tables
from edgeinfinite.export.onnx.observe import ObservedGraph
from edgeinfinite.export.onnx.passes import shared_copy
from edgeinfinite.export.onnx.passes.delta_rule import fused_delta_rule
from edgeinfinite.export.onnx.passes.dequantized import swap_dequantized
from edgeinfinite.export.onnx.passes.experts import split_experts, swap_experts
from edgeinfinite.export.onnx.passes.half_precision import halve_constants, halve_scales
from edgeinfinite.export.onnx.passes.int8_prefill import float_prefill_of_int8
from edgeinfinite.export.onnx.passes.last_token import last_token_only
from edgeinfinite.export.onnx.passes.memory_gate import absorb_gates
from edgeinfinite.export.onnx.passes.merge_linears import merge_linears
from edgeinfinite.export.onnx.passes.narrow_codes import narrow_codes
from edgeinfinite.export.onnx.passes.quantized_weights import (
    QuantizedWeights,
    dequantized_like,
    quantize_weights,
    stored_bytes,
    swap_quantized,
)
from edgeinfinite.export.onnx.passes.rms_norm import fuse_rms_norms
from edgeinfinite.export.onnx.passes.rotary import FusedRotaryTable, fused_rotary, one_grid
from edgeinfinite.export.onnx.passes.simplify_shapes import simplify_shapes
from edgeinfinite.export.onnx.passes.skip_norm import fuse_skip_norms
from edgeinfinite.export.onnx.passes.split_head import split_head
from edgeinfinite.export.onnx.passes.state_space import fused_state_space
from edgeinfinite.export.onnx.passes.tied_head import untransposed_head
from edgeinfinite.export.onnx.passes.whole_cache import fewer_passes
from edgeinfinite.export.onnx.quantize import quantize, take_over
from edgeinfinite.export.onnx.signature import check_signatures
from edgeinfinite.export.onnx.state import OnnxState
from edgeinfinite.export.onnx.trace import trace
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.operations import OperationParity, checks_of
from edgeinfinite.export.recipes import Recipe, WeightFormat
from edgeinfinite.export.scale_type import ScaleType
from edgeinfinite.export.weight_menu import WeightMenu
from edgeinfinite.models.architecture import Architecture, architecture_of
from edgeinfinite.models.attach import cache_scales_of, config_of
from edgeinfinite.models.checkpoint.stored_loading import release_stored
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.models.weights.grouped_weight import GroupedWeight
from edgeinfinite.models.weights.row_modules import holds_stored, widen_stored
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

FILES = {name: f"{name}.onnx" for name in (PREFILL, DECODE, COMPRESS)}
"""`decode_step` is `prefill_segment` with T fixed to 1, for hosts that need fixed shapes; the
weights are the same bytes. Traced once: half the export's time."""

_HEAD_DIM_STEP = 8


_FORMATS = (
    WeightFormat(4, 32, symmetric=False),
    WeightFormat(4, 64, symmetric=False),
    WeightFormat(4, 128, symmetric=False),
    WeightFormat(4),
    WeightFormat(5, 64),
    WeightFormat(5),
    WeightFormat(6, 64),
    WeightFormat(6),
    WeightFormat(8),
)


class OnnxBackend:
    """See `export.backend.Backend`."""

    name = "onnx"
    cache_types: tuple[str, ...] = ("float32", "float16", INT8_CACHE)
    menu = WeightMenu(
        formats=_FORMATS,
        embedding_formats=_FORMATS,
        scale_type=ScaleType(torch.float16, signed=True),
        reads_stored=True,
    )
    graph_bytes = 36_000  # the demo model's and Gemma's are 28,000
    keeps_angles = False
    tools: tuple[str, ...] = ("onnx", "onnxruntime", "onnxscript", "onnx-ir")

    def __init__(self) -> None:
        self._last: tuple[WeightRequest, QuantizedWeights] | None = None

    def check_architecture(self, facts: Architecture, geometry: Geometry) -> None:
        """See `Backend.check_architecture`; capped scores and sliding windows are supported."""
        sizes = [heads.head_dim for heads in facts.every_heads]
        if odd := next((size for size in sizes if size % _HEAD_DIM_STEP), None):
            raise EdgeInfiniteError(
                f"the back end onnx can't attend with heads of {odd} dimensions, as "
                f"{facts.name} has them (ONNX Runtime's GroupQueryAttention wants multiples of "
                f"{_HEAD_DIM_STEP}); use --backend executorch"
            )

    def export_graphs(
        self, request: WeightRequest, folder: Path, target: str, progress: Progress
    ) -> ExportedGraphs:
        """See `Backend.export_graphs`."""
        model = request.model
        self.check_architecture(architecture_of(model), config_of(model).geometry)
        shape = ModelShape.of(model)
        state = shape.state()
        progress("quantizing", 0.0)
        weights = self._quantized(request)
        progress("tracing the model", 0.3)
        traced, applied = _trace_model(model, weights)
        operators = {PREFILL: operators_of(traced)}
        presents = cache_outputs(state)
        graphs = {
            graph.name: graph(model, partial(OnnxState, gates=[]), state, presents).spec(
                FILES[graph.name]
            )
            for graph in (PrefillSegment, DecodeStep)
        }
        with WeightsFile(folder) as file:
            progress("writing the weights", 0.8)
            file.save(traced, FILES[PREFILL])
            tables = looked_up_tables(traced)
            fix_tokens(folder / FILES[PREFILL], folder / FILES[DECODE])
            if shape.compresses:
                progress("tracing the compression", 0.9)
                carries = shape.geometry.policy == "carry"
                compress = (
                    CarryMemory(model, state, FusedRotaryTable)
                    if carries
                    else CompressMemory(model, state)
                )
                traced = trace(compress)
                applied[fewer_passes.__name__] = fewer_passes(traced)
                halve_constants(traced)
                operators[COMPRESS] = operators_of(traced)
                file.save(traced, FILES[COMPRESS])
                graphs[COMPRESS] = compress.spec(FILES[COMPRESS])
        details: dict[str, Any] = {"passes": applied, "operators": operators}
        if tables:
            details[LOOKED_UP] = tables
        return ExportedGraphs(graphs, state, info_of(model, request.recipe, weights), details)

    def quantized_reference(self, request: WeightRequest) -> PreTrainedModel:
        """See `Backend.quantized_reference`."""
        model = request.model
        weights = self._quantized(request)
        self._last = None  # the reference needs no more of them than it holds
        if not weights:
            return model
        if holds_stored(model):
            reference = shared_copy(model)
            swap_dequantized(reference, weights)
            return reference
        dequantized = {
            id(model.get_parameter(name)): torch.nn.Parameter(
                dequantized_like(model, name, w), requires_grad=False
            )
            for name, w in weights.items()
        }
        return shared_copy(model, dequantized)

    def exact_parity(
        self,
        folder: Path,
        manifest: Manifest,
        reference: TorchEngine,
        states: Sequence[State],
        tokens: Iterator[int],
    ) -> list[Check]:
        """See `Backend.exact_parity`: operation by operation."""
        if soc_of(manifest) is not None:
            return []
        rounds = cache_type_of(manifest) != "float32"
        operations = OperationParity(ObservedGraph(folder, manifest), reference, rounds=rounds)
        found = [
            operations.compare_from(state, partial(State, manifest.state), tokens)
            for state in states
        ]
        checks = checks_of([error for errors in found for error in errors])
        return checks + check_experts(folder, manifest, reference.model)

    def weights_bytes(self, request: WeightRequest) -> int:
        """See `Backend.weights_bytes`."""
        return stored_bytes(request.model, request.recipe, request.integers)

    def rounded(
        self, weight: torch.Tensor, form: WeightFormat, *, embedding: bool
    ) -> tuple[torch.Tensor, int]:
        """See `Backend.rounded`."""
        quantized = quantize(weight, form, offsets=not embedding)
        return quantized.dequantized(), quantized.stored_bytes

    def held(self, weight: GroupedWeight, *, embedding: bool) -> tuple[torch.Tensor, int] | None:
        """See `Backend.held`."""
        if embedding and not weight.symmetric:
            return None
        quantized = take_over(weight)
        return quantized.dequantized(), quantized.stored_bytes

    def check_signatures(self, folder: Path, manifest: Manifest) -> list[Check]:
        """See `Backend.check_signatures`."""
        return check_signatures(folder, manifest)

    def _quantized(self, request: WeightRequest) -> QuantizedWeights:
        """Quantizes once for the graphs and for the reference after them."""
        if self._last is None or self._last[0] is not request:
            weights = quantize_weights(request.model, request.recipe, request.integers)
            release_stored(request.model)
            self._last = (request, weights)
        return self._last[1]


def _trace_model(
    model: PreTrainedModel, weights: QuantizedWeights
) -> tuple[ir.Model, dict[str, Any]]:
    """The graph of prefill and decode, and what the passes did."""
    shape = ModelShape.of(model)
    state = shape.state()
    swapped = shared_copy(model)
    gates = absorb_gates(swapped)
    swap_quantized(swapped, weights)
    widen_stored(swapped)
    layers_with_experts = swap_experts(swapped, weights)
    applied: dict[str, Any] = {
        "quantized_weights": len(weights),
        "untransposed_head": untransposed_head(swapped),
        "rms_norm": fuse_rms_norms(swapped),
        "last_token": last_token_only(swapped),
        "one_grid": one_grid(swapped),
    }
    if quantiles := constant_quantiles(swapped):
        applied["constant_quantiles"] = quantiles
    with (
        fused_rotary(swapped) as applied["rotary"],
        fused_delta_rule(swapped) as applied["delta_rule"],
        fused_state_space(swapped) as ssms,
    ):
        applied |= {"state_space": ssms} if ssms else {}
        longest = shape.geometry.longest_layer
        scales = [s for s in cache_scales_of(swapped) if s is not None]
        new_state = partial(OnnxState, gates=gates, longest_layer=longest, scales=scales)
        traced = trace(PrefillSegment(swapped, new_state, state, cache_outputs(state)).eval())
    if layers_with_experts:
        applied["experts"] = split_experts(traced)
    for rewrite in (
        simplify_shapes,
        fuse_skip_norms,
        merge_linears,
        halve_scales,
        narrow_codes,
        split_head,
        float_prefill_of_int8,
    ):
        applied[rewrite.__name__] = rewrite(traced)
    RemoveUnusedNodesPass()(traced)
    return traced, applied


def operators_of(model: ir.Model) -> dict[str, int]:
    """The number of nodes by operator."""
    return dict(Counter(node.op_type for node in model.graph).most_common())


def info_of(model: PreTrainedModel, recipe: Recipe, weights: QuantizedWeights) -> QuantizationInfo:
    """What was quantized how, for the manifest."""
    names = [name for name, _ in model.named_parameters()]
    return QuantizationInfo(
        recipe=recipe.name,
        quantized={name: str(weight) for name, weight in weights.items()},
        unquantized=[name for name in names if name not in weights],
    )
