"""Traces a graph module to an ONNX model, through `torch.export` and `torch.onnx`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir
import torch
from onnx_ir.passes.common import (
    CommonSubexpressionEliminationPass,
    DeduplicateInitializersPass,
    InlinePass,
    LiftConstantsToInitializersPass,
    NameFixPass,
    OutputFixPass,
    RemoveUnusedNodesPass,
)
from onnxscript.optimizer import fold_constants

from edgeinfinite.export.graphs.compress import CompressMemory
from edgeinfinite.export.graphs.tokens import DecodeStep, PrefillSegment
from edgeinfinite.export.onnx.shortcuts import traced_once

OPSET = 20


def trace(graph: PrefillSegment | DecodeStep | CompressMemory) -> ir.Model:
    """Traces a graph with its own example inputs.

    Returns:
        The optimised model; inputs and outputs have the names of the graph's `spec`.
    """
    with torch.no_grad(), _quiet(), traced_once():
        program = torch.export.export(
            graph,
            graph.example_inputs(),
            dynamic_shapes=graph.dynamic_shapes(),
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
        exported = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=OPSET,
            input_names=graph.input_names(),
            output_names=graph.output_names(),
            verbose=False,
            optimize=False,
        )
    assert exported is not None
    _clean(exported.model)
    return exported.model


def _clean(model: ir.Model) -> None:
    """Does what torch.onnx's own `optimize` does, without its pattern matching.

    The pattern matching takes minutes on a graph of thousands of nodes. `passes.simplify_shapes`
    removes the same nodes from our graphs in a fraction of a second.
    """
    InlinePass()(model)
    fold_constants(model, onnx_shape_inference=False)
    for clean in (
        RemoveUnusedNodesPass(),
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        DeduplicateInitializersPass(),
        CommonSubexpressionEliminationPass(),
        OutputFixPass(),
        NameFixPass(),
    ):
        clean(model)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the exporter's own warnings (missing torchvision, deprecations) from users."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
