"""Graphs of tiny models as a back end wrote them, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from architectures import ARCHITECTURES
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import SCHEMA_VERSION, BackboneInfo, GateInfo, Manifest
from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.export.backend import ExportedGraphs
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, config_of
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, random_tokens, tiny_family

REENCODE = Geometry(segment_length=16, sink_length=4, window_length=4)
CARRY = Geometry(segment_length=8, sink_length=4, window_length=12, policy="carry")


def manifest_of(model: PreTrainedModel, backend: str, exported: ExportedGraphs) -> Manifest:
    """The manifest of graphs that were exported without a command line."""
    facts, config = architecture_of(model), config_of(model)
    sizes = len(facts.layers), facts.query_heads, facts.kv_heads, facts.head_dim
    gate = None if config.gate == "none" else GateInfo("untrained", config.gate_rank or 1, 1, "0")
    return Manifest(
        schema_version=SCHEMA_VERSION,
        backend=backend,
        target="cpu",
        backbone=BackboneInfo(
            "tiny", facts.name, *sizes, facts.vocabulary, facts.positions, 1, "0"
        ),
        geometry=config.geometry,
        gate=gate,
        scorer=None,
        state=exported.state,
        graphs=exported.graphs,
        quantization=exported.quantization,
        parity={},
        files={},
        tools={},
        details={},
    )


def assert_both_policies_compute_what_pytorch_does(
    name: str,
    backend: str,
    export: Callable[[PreTrainedModel], ExportedGraphs],
    opened: Callable[[Manifest], Engine],
) -> ExportedGraphs:
    """Exports a tiny model of an architecture and compares it with PyTorch, under both policies.

    Args:
        name: of `ARCHITECTURES`.
        backend: the name for the manifest.
        export: writes the graphs of an attached model.
        opened: loads what was written last.

    Returns:
        What was exported for `carry`.
    """
    known = ARCHITECTURES[name]
    model = tiny_family(name, **known.one_layer)
    attach(model, EdgeInfiniteConfig(CARRY, NO_GATE))
    carry = export(model)
    assert_any_split_is_what_pytorch_computes(opened(manifest_of(model, backend, carry)), model)
    if any(known.windows):
        attach(model, EdgeInfiniteConfig(REENCODE, gate_rank=8))
        reencode = export(model)
    else:  # without a gate and windows, a cache of as many slots is read by the same graphs
        attach(model, EdgeInfiniteConfig(REENCODE, NO_GATE))
        reencode = replace(
            carry, graphs={graph: carry.graphs[graph] for graph in (PREFILL, DECODE)}
        )
    assert_any_split_is_what_pytorch_computes(opened(manifest_of(model, backend, reencode)), model)
    return carry


def assert_any_split_is_what_pytorch_computes(engine: Engine, model: PreTrainedModel) -> None:
    """Both read 60 tokens, split differently, and agree wherever they stand at the same token.

    Args:
        engine: runs the exported graphs of `model`.
        model: attached, float32.
    """
    subject, reference = Session(engine, chunk_length=5), Session(TorchEngine(model))
    tokens, start = random_tokens(60), 0
    for end in (9, 10, 50, 51, 60):
        wanted = reference.append(tokens[start:end])
        assert_close(subject.append(tokens[start:end]), wanted, 1e-4)
        start = end
    assert subject.compressions >= 2
    whole = Session(engine, chunk_length=1000).append(tokens)
    assert_close(whole, wanted, 1e-4)
    np.testing.assert_array_equal(subject.state.length, reference.state.length)
