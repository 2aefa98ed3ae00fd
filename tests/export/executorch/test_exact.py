"""A written program read back: sound ones agree with the checkpoint, every kind of fault shows."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from executorch.exir import to_edge
from program_faults import FAULTS, ProgramFaults
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.executorch.exact import xnnpack
from edgeinfinite.export.executorch.exact.program import ExactProgram
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine

NAMES = ("exact:logits", "exact:k_cache", "exact:v_cache")


@pytest.fixture(scope="module", params=["none", "int8", "int4"])
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exact") / request.param
    return tiny_artifact(place, "--backend", "executorch", "--quantize", request.param)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> ProgramFaults:
    place = tmp_path_factory.mktemp("faults") / "int4"
    tiny_artifact(place, "--backend", "executorch", "--quantize", "int4")
    return ProgramFaults(place, str(place.with_name("int4-checkpoint")))


def test_a_sound_program_is_far_within_the_limit(artifact: Path) -> None:
    checkpoint = str(artifact.with_name(f"{artifact.name}-checkpoint"))
    checks = {check.check: check for check in verify_artifact(artifact, model=checkpoint)}
    for name in NAMES:
        assert checks[name].limit is not None and checks[name].value < checks[name].limit / 10


def test_what_is_read_back_computes_what_the_program_does(artifact: Path) -> None:
    """Where nothing is rounded, ExecuTorch's own results say whether it was read rightly."""
    if artifact.name != "none":
        return
    engine = load_engine(artifact)
    program = ExactProgram(artifact / "model.pte")
    results = []
    for exact in (False, True):
        if exact:
            for name in (PREFILL, DECODE):
                engine._methods[name].compute = program.method(name).call  # type: ignore[attr-defined]
        state = engine.new_state()
        logits = [engine.prefill_segment(np.array([[5, 6, 7]]), state)]
        state.length[...] += 3
        logits.append(engine.decode_step(np.array([[8]]), state))
        results.append((np.stack(logits), state.arrays["k_cache_1"]))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", list(FAULTS))
def test_every_kind_of_fault_is_found(faults: ProgramFaults, kind: str) -> None:
    assert faults.passes()
    random = np.random.default_rng(0)
    results = [faults.finds(kind, random) for _ in range(3)]
    known = [result for result in results if result is not None]
    assert known, "the program has no place for it"
    assert all(found for found, _ in known), known


def test_a_program_with_unknown_operations_is_said_to_be_not_compared(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(xnnpack._KINDS, "XNNSoftmax")
    checkpoint = str(artifact.with_name(f"{artifact.name}-checkpoint"))
    with caplog.at_level(logging.WARNING):
        checks = verify_artifact(artifact, model=checkpoint)
    assert not any(check.check in NAMES for check in checks)
    assert "isn't compared in exact arithmetic: it has XNNSoftmax" in caplog.text


def test_an_operator_with_several_results_is_computed(tmp_path: Path) -> None:
    module = torch.nn.Module()
    module.forward = lambda x: tuple(x.topk(3))  # type: ignore[method-assign]
    numbers = torch.randn(2, 7)
    program = to_edge(torch.export.export(module, (numbers,))).to_executorch()
    path = tmp_path / "model.pte"
    path.write_bytes(program.buffer)
    found = ExactProgram(path).method("forward").call([numbers])
    assert torch.equal(found[0].float(), numbers.topk(3).values)


def test_a_file_that_is_no_program_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(b"no program" * 100)
    with pytest.raises(EdgeInfiniteError, match=r"model\.pte can't be read"):
        ExactProgram(path)
