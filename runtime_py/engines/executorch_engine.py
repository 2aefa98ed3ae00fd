"""ExecuTorch as an engine: one program, three methods, XNNPACK on the CPU.

The state's own arrays are the methods' inputs. `llama::update_cache` writes new keys and values
into them, so a call costs the same at any capacity and copies no cache. ExecuTorch's Python runtime
takes torch tensors; they share the arrays' memory. Letters: T new tokens, C capacity of a layer's
cache, U the number of its first slots that a call gets (length + T or more), V vocabulary.
"""

from __future__ import annotations

import importlib.util
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.manifest import Manifest, fingerprint, model_digest, scales_digest
from edgeinfinite.artifact.tensors import COMPRESS, DECODE, PREFILL, GraphSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Reader, failed, usable_cpus
from edgeinfinite.runtime_py.engines.xnnpack_options import share_packed_weights
from edgeinfinite.runtime_py.session.carried import place_carried
from edgeinfinite.runtime_py.session.state import State

CHUNK_LENGTH = 256
"""T of a prefill call, see `docs/executorch.md` for what other lengths cost."""

SLOTS_STEP = 64
"""U of a decode call is a multiple of this: XNNPACK prepares a graph anew whenever a size changes,
in 4 to 5 ms. Slots that hold nothing yet are masked."""

ONLY_PACKED = "only_packed_constants"
"""Key in the manifest's details of a method: XNNPACK packs all constants of its part of the method,
so that the method may share its packed weights (`xnnpack_options.py`)."""

_CUSTOM_OPERATORS = "libcustom_ops_aot_lib"

_ALIVE: weakref.WeakSet[ExecuTorchEngine] = weakref.WeakSet()


class ExecuTorchEngine:
    """See `Engine`.

    Args:
        folder: the artifact, whose files match the manifest (`load_manifest` checks them).
        manifest: the artifact's manifest.
        threads: CPU threads of one call. ExecuTorch has one thread pool per process, whose size is
            fixed while an engine is open. None uses the pool of the engines that are open, or, if
            none is, one thread for each CPU that this process may use.

    Raises:
        EdgeInfiniteError: executorch isn't installed, can't load the program, or runs on another
            number of threads already.
    """

    name = "executorch"
    chunk_length = CHUNK_LENGTH

    def __init__(self, folder: Path, manifest: Manifest, *, threads: int | None = None) -> None:
        self.geometry = manifest.geometry
        self.vocabulary = manifest.backbone.vocabulary
        self.fingerprint = fingerprint(manifest)
        self.model_digest = model_digest(manifest)
        self.cache_scales = scales_digest(manifest)
        self.reads_memory = manifest.gate is not None
        self._state_specs = manifest.state
        self._torch, self._runtime = _executorch()
        _set_threads(self._runtime, threads)
        _ALIVE.add(self)
        path = folder / manifest.graphs[DECODE].file
        methods = [manifest.details.get(name, {}) for name in manifest.graphs]
        packed = [method.get(ONLY_PACKED, False) for method in methods]
        share_packed_weights(self._runtime, bool(packed) and all(packed))
        try:
            self._program = self._runtime._load_program(str(path))
            self._methods = {
                name: _Method(self._torch, self._program.load_method(name), name, spec)
                for name, spec in manifest.graphs.items()
            }
        except RuntimeError as error:
            raise EdgeInfiniteError(
                f"{path} can't be loaded by executorch: {' '.join(str(error).split())[:200]}; "
                "copy the artifact again or export it again"
            ) from error

    @classmethod
    def open(
        cls,
        folder: Path,
        manifest: Manifest,
        *,
        threads: int | None,
        every_graph: bool,
    ) -> ExecuTorchEngine:
        """See `Engine.open`."""
        return cls(folder, manifest, threads=threads)

    def new_state(self) -> State:
        return State(self._state_specs)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        method = self._methods[PREFILL]
        logits = None
        renewed: dict[str, np.ndarray] = {}
        for start in range(0, tokens.shape[1], method.most_tokens):
            chunk = tokens[:, start : start + method.most_tokens]
            # The prefill method needs at least two tokens; `decode_step` reads one.
            chosen = method if chunk.shape[1] > 1 else self._methods[DECODE]
            results = chosen.run(state, chunk, state.length + start, renewed)
            logits, renewed = results[0], chosen.renewed(results)
        assert logits is not None
        _replace(state, renewed)  # only now, so that a call that fails leaves the text as it was
        return logits[0]

    def reading(self, tokens: int) -> AbstractContextManager[Reader | None]:
        return nullcontext()

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        method = self._methods[DECODE]
        results = method.run(state, tokens, state.length)
        _replace(state, method.renewed(results))
        return results[0][0]

    def compress_memory(self, state: State) -> None:
        method = self._methods[COMPRESS]
        results = method.run(state, None, state.length)
        _replace(state, method.renewed(results))
        if self.geometry.policy == "carry":
            names = (spec.name for spec in method.spec.outputs)
            place_carried(state, self.geometry, dict(zip(names, results, strict=True)))


ENGINE = ExecuTorchEngine


def _replace(state: State, renewed: Mapping[str, np.ndarray]) -> None:
    """Copies what a method computed anew into the state's own arrays."""
    for name, array in renewed.items():
        state.arrays[name][...] = array


class _Method:
    """One method of the program and, for every state that still lives, its arrays as tensors.

    `compute(inputs, clone_outputs)` is ExecuTorch's, or another that computes the same.
    """

    def __init__(self, torch: Any, method: Any, name: str, spec: GraphSpec) -> None:
        self.spec = spec
        self._name = name
        self.most_tokens = 0
        if spec.inputs[0].role == "tokens":
            self.most_tokens = int(method.method_meta().input_tensor_meta(0).sizes()[1])
        self._torch = torch
        self._method = method  # `compute` belongs to it
        self.compute = method.call
        # For each input of U slots: the layer whose length determines U.
        self._layers = [given.layer if "U" in given.shape else None for given in spec.inputs]
        self._shared: weakref.WeakKeyDictionary[State, dict[str, Any]] = weakref.WeakKeyDictionary()

    def renewed(self, outputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Of a call's outputs, what replaces tensors of the state, by their names."""
        pairs = zip(self.spec.outputs, outputs, strict=True)
        return {spec.updates: output for spec, output in pairs if spec.updates is not None}

    def run(
        self,
        state: State,
        tokens: np.ndarray | None,
        length: np.ndarray,
        renewed: Mapping[str, np.ndarray] | None = None,
    ) -> list[np.ndarray]:
        """Computes the method.

        Args:
            state: its caches are updated in place.
            tokens: `[1, T]` int64; None for `compress_memory`.
            length: `[L]` int64, slots in use.
            renewed: what a call before this one computed anew; read in place of the state's.

        Returns:
            The outputs, in memory of their own.
        """
        shared = self._shared.get(state)
        if shared is None:
            shared = self._shared[state] = {
                name: self._torch.from_numpy(array) for name, array in state.arrays.items()
            }
        given = dict(shared, length=self._torch.from_numpy(length))
        given |= {name: self._torch.from_numpy(array) for name, array in (renewed or {}).items()}
        used: list[int] = []
        if tokens is not None:
            given["tokens"] = self._torch.from_numpy(np.ascontiguousarray(tokens))
            step = SLOTS_STEP if tokens.shape[1] == 1 else 1
            used = (-(-(length + tokens.shape[1]) // step) * step).tolist()
        inputs = [
            # The first slots of a cache `B C K D` are one piece of memory: a view, no copy. Beyond
            # a layer's own C, slicing ends at C.
            given[spec.name] if layer is None else given[spec.name][:, : used[layer]]
            for spec, layer in zip(self.spec.inputs, self._layers, strict=True)
        ]
        # NumPy copies, not ExecuTorch through torch: torch's threads would keep spinning after a
        # copy of this size, on the CPUs that the next call needs.
        try:
            outputs = self.compute(inputs, clone_outputs=False)
        except RuntimeError as error:
            raise failed("executorch", self._name, error) from error
        return [output.numpy().copy() for output in outputs]


def _executorch() -> tuple[Any, Any]:
    """torch and ExecuTorch's runtime with the operators that the programs use."""
    try:
        import torch

        # `portable_lib` offers the same but imports the compiler: 3 seconds and 140 MB more.
        from executorch.extension.pybindings import _portable_lib
    except ImportError as error:
        raise EdgeInfiniteError(
            f"this artifact needs the package {error.name or 'executorch'}; "
            f"install it with: {backend_entry(ExecuTorchEngine.name).runtime_install}"
        ) from error
    operators = set(_portable_lib._get_operator_names())
    if "quantized_decomposed::embedding_byte.out" not in operators:
        import executorch.kernels.quantized  # noqa: F401
    if "llama::update_cache.out" not in operators:
        # executorch.extension.llm.custom_ops would import PyTorch's compiler.
        torch.ops.load_library(str(_custom_operators()))
    return torch, _portable_lib


def _custom_operators() -> Path:
    spec = importlib.util.find_spec("executorch.extension.llm")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in sorted((Path(folder) / "custom_ops").glob(f"{_CUSTOM_OPERATORS}.*")):
            return path
    raise EdgeInfiniteError(
        f"this executorch has no {_CUSTOM_OPERATORS}, which holds llama::update_cache; "
        f"install it with: {backend_entry(ExecuTorchEngine.name).runtime_install}"
    )


def _set_threads(runtime: Any, threads: int | None) -> None:
    """Sets the thread pool's size, never while an engine is open: its methods would crash."""
    with _silent():
        now = runtime._threadpool_get_thread_count()
    if not _ALIVE:
        if now != (threads or usable_cpus()):
            with _silent():
                runtime._unsafe_reset_threadpool(threads or usable_cpus())
    elif threads not in (None, now):
        raise EdgeInfiniteError(
            f"executorch runs on {now} threads in this process, {threads} were asked for; it has "
            f"one pool for all engines: close the others first, or ask for {now}"
        )


@contextmanager
def _silent() -> Iterator[None]:
    """Hides what C++ writes to stderr: lines about files of ARM systems and about threads."""
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no stderr: nothing to keep clean
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
