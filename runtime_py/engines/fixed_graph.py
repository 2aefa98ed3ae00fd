"""Graphs of fixed shape (`docs/npu.md`): the host fills chunks up, scales M and z, and writes K, V.

Letters: L layers, K KV heads, T the graph's number of tokens, D head dimension.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from edgeinfinite.artifact.tensors import CACHES, NEW_PARTS, GraphSpec, tensor_name
from edgeinfinite.runtime_py.engines.base import failed
from edgeinfinite.runtime_py.session.state import State


def tokens_of(graph: GraphSpec) -> int | None:
    """T of a graph of fixed shape, None for one that takes any number of tokens."""
    size = next(spec.shape[1] for spec in graph.inputs if spec.role == "tokens")
    return None if isinstance(size, str) or not _writes_new(graph) else size


class FixedGraph:
    """`prefill_segment` or `decode_step` of fixed shape, over the arrays of every live state.

    Args:
        ort: the module `onnxruntime`.
        open_session: opens the graph on any provider. It is called when the graph is first needed:
            compiling for the emulator takes a minute.
        spec: the graph's signature.
    """

    def __init__(self, ort: Any, open_session: Callable[[], Any], spec: GraphSpec) -> None:
        self.spec = spec
        self.tokens = tokens_of(spec) or 1
        self._ort = ort
        self._open_session = open_session
        self._bound: weakref.WeakKeyDictionary[State, BoundState] = weakref.WeakKeyDictionary()

    def logits(self, state: State, tokens: np.ndarray) -> np.ndarray:
        """Reads tokens `[1, n]`, n >= 1, in chunks of T; returns logits `[V]` of the last one.

        The state's caches are written behind the slots in use; its `length` isn't changed.
        """
        bound = self.bound(state)
        for begin in range(0, tokens.shape[1], self.tokens):
            chunk = tokens[0, begin : begin + self.tokens]
            bound.set(state, chunk, begin)
            try:
                self._session.run_with_iobinding(bound.binding)
            except Exception as error:  # onnxruntime's own exceptions have no common base
                raise failed("onnxruntime", self.spec.file, error) from error
            bound.write_new(state, len(chunk), begin)
        return bound.arrays["logits"][0].copy()

    @cached_property
    def _session(self) -> Any:
        return self._open_session()

    def bound(self, state: State) -> BoundState:
        """The state's arrays as this graph's inputs."""
        bound = self._bound.get(state)
        if bound is None:
            bound = self._bound[state] = BoundState(self._ort, self._session, self.spec, state)
        return bound


class BoundState:
    """A state's arrays and the graph's own inputs and outputs. Holds the arrays, not the state.

    Attributes:
        arrays: inputs and outputs that aren't the state's, by name.
        filler: the token that fills chunks up.
    """

    filler = 0

    def __init__(self, ort: Any, session: Any, spec: GraphSpec, state: State) -> None:
        self.binding = session.io_binding()
        self.arrays: dict[str, np.ndarray] = {}
        self._values: list[Any] = []
        for tensor in spec.inputs:
            array = state.arrays[tensor.name] if tensor.is_cache else self._own(tensor)
            self.binding.bind_ortvalue_input(tensor.name, self._share(ort, array))
        for output in spec.outputs:
            value = self._share(ort, self._own(output))
            self.binding.bind_ortvalue_output(output.name, value)

    def set(self, state: State, tokens: np.ndarray, begin: int) -> None:
        """Sets the inputs that aren't the state's own arrays.

        Args:
            state: before the call.
            tokens: `[n]`, n <= T.
            begin: tokens of the call that chunks before this one have read.
        """
        own = self.arrays
        own["tokens"][0, : len(tokens)] = tokens
        own["tokens"][0, len(tokens) :] = self.filler
        own["length"][...] = state.length + begin
        if "count" in own:
            own["count"][...] = len(tokens)
        if "memory" in own:
            own["has_memory"][...] = state.has_memory
            memory, norm = scaled_memory(state.arrays["memory"], state.arrays["memory_norm"])
            own["memory"][...], own["memory_norm"][...] = memory, norm

    def write_new(self, state: State, count: int, begin: int) -> None:
        """Writes K and V of the first `count` tokens behind the slots in use."""
        for layer, used in enumerate(state.length.tolist()):
            start = used + begin
            for cache, new in zip(CACHES, NEW_PARTS, strict=True):
                name = tensor_name(cache, layer)
                fresh = state.first_slots(name, self.arrays[tensor_name(new, layer)], count)
                state.slots(name, start, start + count)[...] = fresh

    def _own(self, spec: Any) -> np.ndarray:
        shape = tuple(int(size) for size in spec.shape)
        self.arrays[spec.name] = np.zeros(shape, np.dtype(spec.dtype))
        return self.arrays[spec.name]

    def _share(self, ort: Any, array: np.ndarray) -> Any:
        value = ort.OrtValue.ortvalue_from_numpy(array)
        if value.data_ptr() != array.ctypes.data:
            raise RuntimeError("onnxruntime copied an array that it must share")
        self._values.append(value)
        return value


def scaled_memory(memory: np.ndarray, norm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and z divided by the sum of z, KV head by KV head, so that float16 holds them.

    A_mem = σ(q) M / σ(q) z doesn't change. The sums grow with the text; scaled, z sums to 1 and M
    holds averages of values. An empty memory becomes M = 0 and z = 1 / D: no division by zero.

    Args:
        memory: M `[L, K, D, D]` float32.
        norm: z `[L, K, D]` float32.

    Returns:
        New arrays of the same shapes.
    """
    total = norm.sum(-1, keepdims=True)
    empty = total <= 0.0
    total = np.where(empty, 1.0, total)
    return memory / total[..., np.newaxis], np.where(empty, 1.0 / norm.shape[-1], norm / total)


def _writes_new(graph: GraphSpec) -> bool:
    return any(output.role in NEW_PARTS for output in graph.outputs)
