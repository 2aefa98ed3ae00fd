"""The architectures whose operators no other test lowers, through the ExecuTorch back end.

Llama, Mistral, Qwen2 and Gemma 3 are in the tests beside this one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from architectures import ARCHITECTURES
from exported import CARRY, assert_any_split_is_what_pytorch_computes, manifest_of

from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from tiny import tiny_family


@pytest.mark.parametrize("name", ["Qwen3", "SmolLM3", "Phi-4-mini", "Granite", "OLMo 2", "Gemma 2"])
def test_an_architecture_computes_the_same_on_executorch(name: str, tmp_path: Path) -> None:
    model = tiny_family(name, **ARCHITECTURES[name].one_layer)
    attach(model, EdgeInfiniteConfig(CARRY, NO_GATE))
    exported = BACKEND.export_graphs(model, recipe_named("none"), tmp_path, "cpu", lambda *_: None)
    assert exported.details["decode_step"]["partitions"] == 1, "the whole model is XNNPACK's"
    engine = ExecuTorchEngine(tmp_path, manifest_of(model, "executorch", exported), threads=1)
    assert_any_split_is_what_pytorch_computes(engine, model)
