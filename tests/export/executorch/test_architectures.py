"""Every architecture of the list through the ExecuTorch back end, float32, under both policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from architectures import ARCHITECTURES
from exported import CARRY, REENCODE, assert_any_split_is_what_pytorch_computes, manifest_of
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.export.backend import ExportedGraphs
from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from tiny import tiny_family

PARTITIONS = {"Phi-3": 2}
"""XNNPACK's parts of `decode_step`, where it is more than one."""


def export(model: PreTrainedModel, folder: Path) -> ExportedGraphs:
    return BACKEND.export_graphs(model, recipe_named("none"), folder, "cpu", lambda *_: None)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_computes_the_same_on_executorch(name: str, tmp_path: Path) -> None:
    known = ARCHITECTURES[name]
    model = tiny_family(name, **known.one_layer)
    attach(model, EdgeInfiniteConfig(CARRY, NO_GATE))
    exported = export(model, tmp_path)
    assert exported.details["decode_step"]["partitions"] == PARTITIONS.get(name, 1)
    engine = ExecuTorchEngine(tmp_path, manifest_of(model, "executorch", exported), threads=1)
    assert_any_split_is_what_pytorch_computes(engine, model)
    if any(known.windows):
        attach(model, EdgeInfiniteConfig(REENCODE, gate_rank=8))
        exported = export(model, tmp_path)
    else:  # without a gate and windows, a cache of as many slots is read by the same program
        attach(model, EdgeInfiniteConfig(REENCODE, NO_GATE))
        graphs = {graph: exported.graphs[graph] for graph in (PREFILL, DECODE)}
        exported = replace(exported, graphs=graphs)
    engine = ExecuTorchEngine(tmp_path, manifest_of(model, "executorch", exported), threads=1)
    assert_any_split_is_what_pytorch_computes(engine, model)
