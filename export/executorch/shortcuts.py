"""Skips steps in which ExecuTorch finds out again what is known.

With 30 layers tracing partitions again took a third of an export's time, and looking for weights a
fifth of the rest. Each is patched by name while it isn't needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from unittest import mock

import torch
from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.pass_base import ExportPass
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult


@contextmanager
def no_linears_to_find() -> Iterator[None]:
    """Inside, XNNPACK's preparation doesn't look for linear layers that were split into `mm`.

    Our graphs have none. If one were left, XNNPACK's preparation would refuse it.
    """
    with mock.patch.object(xnnpack_preprocess, "ConvertToLinearPass", _Nothing, create=False):
        yield


class _Nothing(ExportPass):
    """A pass that leaves the graph as it is, without tracing it."""

    def call(self, graph_module: GraphModule) -> PassResult:
        return PassResult(graph_module, False)


@contextmanager
def known_delegates() -> Iterator[None]:
    """Inside, ExecuTorch reads the shapes of a partition's results from the partition's graph.

    Otherwise its last passes compute every partition, operator by operator, on tensors without
    data.
    """
    original = LoweredBackendModule.original_module.fget
    known = property(lambda module: _KnownResults(original(module)))
    with mock.patch.object(LoweredBackendModule, "original_module", known):
        yield


class _KnownResults:
    """A partition's program whose module returns tensors of the right shapes."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def module(self) -> Any:
        """A callable like that of `ExportedProgram.module`; returns empty tensors."""
        results: Any = self._program.graph.output_node().args[0]
        values = [node.meta["val"] for node in results]
        return lambda *_: [torch.empty(value.shape, dtype=value.dtype) for value in values]


@contextmanager
def remembered_weights(program: ExportedProgram) -> Iterator[None]:
    """Inside, the program's signature remembers which inputs are weights; it mustn't change.

    XNNPACK's partitioner asks several times for each node, and each time the signature makes its
    table of all weights anew.
    """
    signature = program.graph_signature
    remembering = _RememberingSignature(signature.input_specs, signature.output_specs)
    with mock.patch.object(program, "_graph_signature", remembering):
        yield


class _RememberingSignature(ExportGraphSignature):
    @cached_property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        return super().inputs_to_parameters

    @cached_property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        return super().inputs_to_buffers

    @cached_property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        return super().inputs_to_lifted_tensor_constants
