"""Artifacts whose layers have more than one cache, on both back ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session import Session
from tiny import tiny_llama

CACHES = [[0, 0, 1], [64, 0, 0, 2], [32, 1, 0, 1, 2]]
"""The first layer's middle head stands apart, so its heads are joined again from three parts."""

CARRY = ["--policy", "carry", "--scorer", "untrained"]


@pytest.fixture(params=["onnx", "executorch"])
def backend(request: pytest.FixtureRequest) -> str:
    pytest.importorskip({"onnx": "onnxruntime", "executorch": "executorch"}[request.param])
    return str(request.param)


def exported(folder: Path, *options: str) -> Path:
    model = tiny_llama(heads=6, kv_heads=3, vocabulary=VOCABULARY)
    return tiny_artifact(folder, *CARRY, *options, model=model)


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    path = tmp_path / "slots.json"
    path.write_text(json.dumps(CACHES))
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "shared"
    return exported(folder, "--recall-slots", json.dumps(CACHES))


@pytest.mark.parametrize("cache_type", ["float32", "int8"])
def test_an_artifact_with_shared_layers_computes_what_the_checkpoint_computes(
    tmp_path: Path, slots: Path, backend: str, cache_type: str
) -> None:
    if (backend, cache_type) == ("executorch", "int8"):
        pytest.skip("executorch/test_int8_cache.py has it")
    given = str(slots) if cache_type == "int8" else json.dumps(CACHES)  # a file, or its text
    options = ["--backend", backend, "--recall-slots", given, "--cache-type", cache_type]
    folder = exported(tmp_path / "shared", *options)
    geometry = load_manifest(folder).geometry
    assert geometry.caches == ((0, 1), (0, 0, 2), (1, 0, 1, 2))
    assert geometry.recall_slots == (0, 64, 32)
    checks = verify_artifact(folder, model=str(tmp_path / "shared-checkpoint"))
    assert [check for check in checks if not check.passed] == []
    if backend == "executorch":
        assert "exact:logits" in {check.check for check in checks}
    session = Session(load_engine(folder))
    session.append([number % 250 for number in range(300)])
    behind = len(session.residual)
    assert session.state.length.tolist() == [4 + behind, 68 + behind, 36 + behind]


def test_onnx_cuts_heads_without_transposing(shared: Path) -> None:
    onnx = pytest.importorskip("onnx")
    for graph in ("prefill_segment.onnx", "decode_step.onnx"):
        nodes = onnx.load(shared / graph, load_external_data=False).graph.node
        operators = [node.op_type for node in nodes]
        assert operators.count("GroupQueryAttention") == len(CACHES)
        assert "Transpose" not in operators


def test_a_saved_session_goes_on(tmp_path: Path, shared: Path) -> None:
    first, tokens = Session(load_engine(shared)), [number % 250 for number in range(200)]
    first.append(tokens)
    save_session(first, tmp_path / "session")
    second, _ = load_session(load_engine(shared), tmp_path / "session")
    np.testing.assert_array_equal(first.append([7, 8]), second.append([7, 8]))


def test_a_file_of_caches_that_miss_a_head_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_artifact(tmp_path / "plain", *CARRY, "--recall-slots", "32")
    slots = tmp_path / "slots.json"
    slots.write_text(json.dumps([[0, 0, 0], [64, 1, 0, 1]]))
    checkpoint = str(folder.with_name("plain-checkpoint"))
    command = ["export", "--model", checkpoint, "--output", str(tmp_path / "x"), *CARRY]
    assert main([*command, "--recall-slots", str(slots)]) == 2
    assert "each KV head of each layer once" in capsys.readouterr().err
