"""`prefill_segment` for an NPU with the logits of all its tokens, and an engine that keeps them.

The shipped graph computes its last layer's MLP and LM head for the newest token alone, so a loss
over a text would take one emulated call a token. This variant has the same weights and operators
and leaves that one pass out: a call gives as many losses as it reads tokens. The emulator takes
about as long for 128 tokens as for a few decoded ones. Experiments only; nothing ships it.

Letters: T tokens of a call, V vocabulary.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass

from edgeinfinite.artifact.manifest import Manifest, load_manifest, soc_of
from edgeinfinite.artifact.socs import QNN_HTP, soc_named
from edgeinfinite.artifact.tensors import GraphSpec, OutputSpec
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import StateFactory, StateTensors
from edgeinfinite.export.graphs.tokens import PrefillSegment
from edgeinfinite.export.mixing.plan import plan_quantization
from edgeinfinite.export.onnx.files import WeightsFile
from edgeinfinite.export.onnx.passes import shared_copy
from edgeinfinite.export.onnx.passes.memory_gate import absorb_gates
from edgeinfinite.export.onnx.passes.quantized_weights import swap_quantized
from edgeinfinite.export.onnx.passes.rms_norm import fuse_rms_norms
from edgeinfinite.export.onnx.qnn.backend import QnnBackend
from edgeinfinite.export.onnx.qnn.graphs import TOKENS, new_outputs, state_of
from edgeinfinite.export.onnx.qnn.passes import code_embedding, fill_groups, tabulate_rotary
from edgeinfinite.export.onnx.qnn.state import QnnState
from edgeinfinite.export.onnx.trace import trace
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.plan import plan_export
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.runtime_py.engines.base import Prefill
from edgeinfinite.runtime_py.engines.fixed_graph import FixedGraph
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.engines.qnn_provider import qnn_session
from edgeinfinite.runtime_py.session.state import State

FILE = "every_row.onnx"


class EveryRow(PrefillSegment):
    """Reads T tokens; returns the logits `[T, V]` after each of them, then the new K and V."""

    def __init__(self, model: Any, new_state: StateFactory, tokens: int) -> None:
        shape = ModelShape.of(model)
        super().__init__(model, new_state, state_of(shape), new_outputs(shape, tokens))
        self._tokens = tokens

    def forward(  # type: ignore[override]
        self,
        tokens: torch.Tensor,
        length: torch.Tensor,
        k_cache: list[torch.Tensor],
        v_cache: list[torch.Tensor],
        recurrent: list[torch.Tensor],
        memory: torch.Tensor | None = None,
        memory_norm: torch.Tensor | None = None,
        has_memory: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """See `PrefillSegment.forward`."""
        given = StateTensors(length, list(k_cache), list(v_cache), memory, memory_norm, has_memory)
        state = self._new_state(given)
        logits = run_tokens(self.model, tokens, state, logits_to_keep=0)
        return logits[0], *state.outputs()

    @property
    def example_tokens(self) -> int:
        return self._tokens

    def dynamic_shapes(self) -> None:  # type: ignore[override]
        """Every shape is fixed."""
        return

    def spec(self, file: str) -> GraphSpec:
        """The graph's signature; no manifest has it."""
        logits = OutputSpec(
            "logits", "float32", (self._tokens, self.shape.vocabulary), "T V", "logits"
        )
        return GraphSpec(file, self._inputs(), (logits, *self._presents))

    def _tokens_size(self) -> int:
        return self._tokens


def write_every_row(model: str, manifest: Manifest, folder: Path) -> GraphSpec:
    """Writes the graph of a checkpoint, with the artifact's geometry and recipe."""
    recipe = manifest.quantization.recipe
    options = ExportOptions(
        model=model,
        output=folder,
        target=QNN_HTP,
        soc=soc_of(manifest),
        quantize=recipe,
        geometry=manifest.geometry,
    )
    plan = plan_export(options)
    backend, attached = plan.backend, plan.backbone.model
    assert isinstance(backend, QnnBackend)
    chosen = plan_quantization(
        plan.backbone, backend, plan.recipe, options.quantization, lambda: 0, lambda *_: None
    )
    weights = backend._quantized(attached, chosen.recipe, chosen.integers)
    geometry = ModelShape.of(attached).geometry
    swapped = shared_copy(attached)
    gates = absorb_gates(swapped)
    swap_quantized(swapped, weights)
    code_embedding(swapped, weights)
    fill_groups(swapped)
    fuse_rms_norms(swapped)
    tabulate_rotary(swapped, geometry.capacity, TOKENS)
    new_state = partial(QnnState, gates=gates, longest_layer=geometry.longest_layer)
    graph = EveryRow(swapped, new_state, min(TOKENS, geometry.segment_length))
    traced = trace(graph.eval())
    RemoveUnusedNodesPass()(traced)
    folder.mkdir(parents=True, exist_ok=True)
    with WeightsFile(folder) as file:
        file.save(traced, FILE)
    return graph.spec(FILE)


class EveryRowEngine(OnnxEngine):
    """The artifact, whose tokens are read by the graph with all logits.

    Args:
        artifact: for the NPU.
        folder, spec: what `write_every_row` made.
        emulate: on the emulated HTP, else on the CPU.

    Attributes:
        rows: the logits `[V]` of every token read, in order; the caller takes them away.
    """

    def __init__(self, artifact: Path, folder: Path, spec: GraphSpec, *, emulate: bool) -> None:
        manifest = load_manifest(artifact, check_files=False)
        super().__init__(artifact, manifest, threads=1)
        soc, path = soc_named(str(soc_of(manifest))), folder / FILE
        session = qnn_session(self._ort, path, soc) if emulate else self._session(path, 1)
        self._graph = FixedGraph(self._ort, lambda: session, spec)
        self.rows: list[np.ndarray] = []

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        bound = self._graph.bound(state)
        for begin in range(0, tokens.shape[1], self._graph.tokens):
            chunk = tokens[0, begin : begin + self._graph.tokens]
            bound.set(state, chunk, begin)
            self._graph._session.run_with_iobinding(bound.binding)
            bound.write_new(state, len(chunk), begin)
            self.rows += list(bound.arrays["logits"][: len(chunk)].copy())
        return self.rows[-1]

    def reading(self, tokens: int) -> AbstractContextManager[Prefill]:
        return nullcontext(self.prefill_segment)

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        return self.prefill_segment(tokens, state)
