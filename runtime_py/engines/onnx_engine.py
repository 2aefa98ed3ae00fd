"""ONNX Runtime as an engine: numpy and onnxruntime, nothing else.

The state's own arrays are bound as inputs and, where the manifest says `alias`, as outputs too: the
graph appends to the caches in place, so a call costs the same at any capacity and copies nothing.
Letters: T new tokens, V vocabulary.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.looked_up import WEIGHTS_FILE, tables_of
from edgeinfinite.artifact.manifest import (
    Manifest,
    fingerprint,
    model_digest,
    scales_digest,
    soc_of,
)
from edgeinfinite.artifact.socs import QNN_HTP, Soc, soc_named
from edgeinfinite.artifact.tensors import COMPRESS, DECODE, PREFILL, GraphSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Reader, failed, usable_cpus
from edgeinfinite.runtime_py.engines.fixed_graph import FixedGraph, tokens_of
from edgeinfinite.runtime_py.engines.float_products import pays_here, with_float_products
from edgeinfinite.runtime_py.engines.malloc_options import freed_memory_goes_back
from edgeinfinite.runtime_py.engines.mapped_tables import MappedTables
from edgeinfinite.runtime_py.engines.qnn_provider import provider_package, qnn_session
from edgeinfinite.runtime_py.engines.reading_graph import ReadingGraph
from edgeinfinite.runtime_py.session.carried import place_carried
from edgeinfinite.runtime_py.session.state import State

CHUNK_LENGTH = 128
"""T of a prefill call. SmolLM2-135M in int4 on two threads, tokens per second: 740 with 64, 778
with 128, 828 with 256, 830 with 512; but 256 holds 32 MB more of activations at the peak."""

_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"


class OnnxEngine:
    """See `Engine`.

    Args:
        folder: the artifact, whose files match the manifest (`load_manifest` checks them).
        manifest: the artifact's manifest.
        threads: CPU threads of one call; None takes one for each CPU that this process may use.
        own_decode: decode with the graph `decode_step`. Otherwise decode with `prefill_segment` on
            one token, which is as fast and needs the weights in memory only once.
        emulate: compile the graphs for the artifact's chip and run them in Qualcomm's emulator.

    Raises:
        EdgeInfiniteError: onnxruntime isn't installed, or can't load a graph; with `emulate`, the
            artifact is for the CPU, or onnxruntime-qnn isn't installed.
    """

    name = "onnx"
    chunk_length = CHUNK_LENGTH

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        *,
        threads: int | None = None,
        own_decode: bool = False,
        emulate: bool = False,
    ) -> None:
        self.geometry = manifest.geometry
        self.vocabulary = manifest.backbone.vocabulary
        self.fingerprint = fingerprint(manifest)
        self.model_digest = model_digest(manifest)
        self.cache_scales = scales_digest(manifest)
        self.reads_memory = manifest.gate is not None
        self._state_specs = manifest.state
        self._ort = _onnxruntime()
        rare = manifest.graphs.get(COMPRESS) if self.geometry.policy == "reencode" else None
        self._rare_file = rare.file if rare else None
        self._soc = _emulated(folder, manifest) if emulate else None
        if emulate:
            provider_package()
        tables = () if emulate else tables_of(manifest.details)
        self._tables = MappedTables(self._ort, folder / WEIGHTS_FILE, tables)
        fixed = tokens_of(manifest.graphs[PREFILL])
        self._own_decode = own_decode or bool(fixed)
        self._graphs: dict[str, Any] = {
            name: self._opened(folder, graph, threads)
            for name, graph in manifest.graphs.items()
            if name not in (PREFILL, DECODE) or (name == DECODE and self._own_decode)
        }
        self._prefill = self._reading_graph(folder, manifest.graphs[PREFILL], threads)
        if fixed:
            self.chunk_length = fixed

    @classmethod
    def open(
        cls,
        folder: Path,
        manifest: Manifest,
        *,
        threads: int | None,
        every_graph: bool,
        emulate: bool = False,
    ) -> OnnxEngine:
        """See `Engine.open`."""
        return cls(folder, manifest, threads=threads, own_decode=every_graph, emulate=emulate)

    def new_state(self) -> State:
        return State(self._state_specs)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        return self._logits(self._prefill.graph, tokens, state)

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        graph = self._graphs[DECODE] if self._own_decode else self._prefill.graph
        return self._logits(graph, tokens, state)

    @contextmanager
    def reading(self, tokens: int) -> Iterator[Reader | None]:
        def read(chunk: np.ndarray, state: State) -> np.ndarray:
            return self._logits(self._prefill.reader, chunk, state)

        with self._prefill.reading(tokens) as is_long:
            yield read if is_long else None

    def _logits(self, graph: Any, tokens: np.ndarray, state: State) -> np.ndarray:
        logits: np.ndarray = graph.logits(state, tokens)
        self._tables.looked_up(tokens.shape[1])
        return logits

    def compress_memory(self, state: State) -> None:
        graph = self._graphs[COMPRESS]
        outputs = graph.run(state)
        _update(state, graph.spec, outputs)
        if self.geometry.policy == "carry":
            place_carried(state, self.geometry, outputs)

    def _reading_graph(self, folder: Path, graph: GraphSpec, threads: int | None) -> ReadingGraph:
        path = folder / graph.file
        reader = None
        if not self._own_decode and pays_here():
            reader = with_float_products(path.read_bytes())

        def opened_reader() -> Any:
            session = self._session(path, threads, looks_up=True, model=reader)
            return _Graph(self._ort, session, graph)

        return ReadingGraph(
            (path, folder / WEIGHTS_FILE),
            lambda: self._opened(folder, graph, threads),
            opened_reader if reader is not None else None,
        )

    def _opened(self, folder: Path, graph: GraphSpec, threads: int | None) -> Any:
        path = folder / graph.file
        reads_tokens = any(spec.role == "tokens" for spec in graph.inputs)
        if not reads_tokens or tokens_of(graph) is None:
            session = self._session(path, threads, looks_up=reads_tokens)
            return _Graph(self._ort, session, graph)
        soc = self._soc
        if soc is not None:
            return FixedGraph(self._ort, lambda: qnn_session(self._ort, path, soc), graph)
        session = self._session(path, threads)
        return FixedGraph(self._ort, lambda: session, graph)

    def _session(
        self,
        path: Path,
        threads: int | None,
        *,
        looks_up: bool = False,
        model: bytes | None = None,
    ) -> Any:
        """A session of a file, or of a model in memory whose weights lie beside the file."""
        options = self._ort.SessionOptions()
        if looks_up:
            self._tables.give_to(options)
        options.intra_op_num_threads = threads or usable_cpus()
        options.inter_op_num_threads = 1
        # Fatal ones only: the errors that it writes in colours are also the exceptions' texts.
        options.log_severity_level = 4
        # Under `reencode` this graph runs rarely, so its working memory is freed after each run.
        options.enable_cpu_mem_arena = path.name != self._rare_file
        # A pattern is one block for all of a call's values: 12 MB more for Gemma 3 270M, no faster.
        options.enable_mem_pattern = False
        # Threads spin during a call, where it pays, and sleep between calls.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if model is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, str(path.parent))
        try:
            with freed_memory_goes_back():
                return self._ort.InferenceSession(model or path, options, ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own exceptions have no common base
            reason = " ".join(str(error).split())[:200]
            raise EdgeInfiniteError(
                f"{path} can't be loaded by onnxruntime {self._ort.__version__}: {reason}; "
                "copy the artifact again or export it again"
            ) from error


ENGINE = OnnxEngine


def _update(state: State, spec: GraphSpec, outputs: Mapping[str, np.ndarray]) -> None:
    """Copies what replaces state tensors, only after the whole graph was computed."""
    for output in spec.outputs:
        if output.updates is not None:
            state.arrays[output.updates][...] = outputs[output.name]


class _Graph:
    """One graph, and a binding to the arrays of every live state."""

    def __init__(self, ort: Any, session: Any, spec: GraphSpec) -> None:
        self.spec = spec
        self._ort = ort
        self._session = session
        self._bound: weakref.WeakKeyDictionary[State, _Bound] = weakref.WeakKeyDictionary()

    def logits(self, state: State, tokens: np.ndarray) -> np.ndarray:
        """Reads tokens `[1, T]`; returns logits `[V]` of the last one."""
        outputs = self.run(state, tokens)
        _update(state, self.spec, outputs)
        return outputs["logits"][0].copy()

    def run(self, state: State, tokens: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Computes the graph; its outputs stay valid until the next call with this state."""
        bound = self._bound.get(state)
        if bound is None:
            bound = self._bound[state] = _Bound(self._ort, self._session, self.spec, state)
        if tokens is not None:
            bound.set_tokens(tokens)
        try:
            self._session.run_with_iobinding(bound.binding)
        except Exception as error:  # onnxruntime's own exceptions have no common base
            raise failed("onnxruntime", self.spec.file, error) from error
        return bound.outputs


class _Bound:
    """A state's arrays as the inputs and outputs of a graph. Holds the arrays, not the state."""

    def __init__(self, ort: Any, session: Any, spec: GraphSpec, state: State) -> None:
        self._ort = ort
        self.binding = session.io_binding()
        self.outputs: dict[str, np.ndarray] = {}
        self._values: list[Any] = []
        self._one_token = np.zeros((1, 1), np.int64)
        self._one_token_value = self._share(self._one_token)
        self._reads_one_token = False
        shared = {name: self._share(array) for name, array in state.arrays.items()}
        for tensor in spec.inputs:
            if tensor.name != "tokens":
                self.binding.bind_ortvalue_input(tensor.name, shared[tensor.name])
        for output in spec.outputs:
            if output.alias is not None:
                self.binding.bind_ortvalue_output(output.name, shared[output.alias])
                continue
            array = np.zeros(tuple(int(size) for size in output.shape), np.dtype(output.dtype))
            self.outputs[output.name] = array
            self.binding.bind_ortvalue_output(output.name, self._share(array))

    def set_tokens(self, tokens: np.ndarray) -> None:
        """Binds `[1, T]` int64; a single token reuses a buffer that is already bound."""
        if tokens.shape[1] == 1:
            self._one_token[...] = tokens
            if not self._reads_one_token:
                self.binding.bind_ortvalue_input("tokens", self._one_token_value)
            self._reads_one_token = True
            return
        self._tokens = self._ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(tokens))
        self.binding.bind_ortvalue_input("tokens", self._tokens)
        self._reads_one_token = False

    def _share(self, array: np.ndarray) -> Any:
        """The array as onnxruntime's own value, over the same memory."""
        value = self._ort.OrtValue.ortvalue_from_numpy(array)
        if value.data_ptr() != array.ctypes.data:
            raise RuntimeError("onnxruntime copied an array that it must share")
        self._values.append(value)
        return value


def _emulated(folder: Path, manifest: Manifest) -> Soc:
    """The chip that the artifact was compiled for."""
    soc = soc_of(manifest)
    if soc is None:
        raise EdgeInfiniteError(
            f"{folder} is for the CPU, so there is no chip to emulate; export it with "
            f"--target {QNN_HTP} --soc NAME"
        )
    return soc_named(soc)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            f"this artifact needs the package onnxruntime; install it with: "
            f"{backend_entry(OnnxEngine.name).runtime_install}"
        ) from error
    return onnxruntime
