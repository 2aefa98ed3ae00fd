"""Every architecture of the list through the ExecuTorch back end, float32, under both policies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from architectures import ARCHITECTURES
from exported import assert_both_policies_compute_what_pytorch_does

from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine

PARTITIONS = {"Phi-3": 2}
"""XNNPACK's parts of `decode_step`, where it is more than one."""


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_computes_the_same_on_executorch(name: str, tmp_path: Path) -> None:
    carry = assert_both_policies_compute_what_pytorch_does(
        name,
        "executorch",
        lambda model: BACKEND.export_graphs(
            WeightRequest(model, recipe_named("none")), tmp_path, "cpu", lambda *_: None
        ),
        lambda manifest: ExecuTorchEngine(tmp_path, manifest, threads=1),
    )
    assert carry.details["decode_step"]["partitions"] == PARTITIONS.get(name, 1)
