"""Graphs compiled for Snapdragon's HTP: every node there, and the emulator computes the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session

pytest.importorskip(
    "onnxruntime_qnn", reason="needs onnxruntime-qnn: pip install 'edgeinfinite[qnn]'"
)

TARGET = ("--target", "qnn-htp", "--soc", "sm8650")
VARIANTS = {
    "reencode": ("--gate", "untrained"),
    "carry": (
        *("--policy", "carry", "--recall-slots", "32,64", "--scorer", "untrained"),
        *("--gate", "untrained", "--quantize", "int4"),
    ),
}

CLOSE = 0.02
"""Of float16 against float32 in two random layers, relative to the logits' spread."""


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each variant, exported when it is first asked for."""
    folder = tmp_path_factory.mktemp("qnn")

    @cache
    def exported(variant: str) -> Path:
        return tiny_artifact(folder / variant, *TARGET, *VARIANTS[variant])

    return exported


@pytest.fixture(params=VARIANTS)
def artifact(request, artifacts: Callable[[str], Path]) -> Path:
    return artifacts(request.param)


@pytest.fixture(scope="module")
def paper(artifacts: Callable[[str], Path]) -> Path:
    return artifacts("reencode")


@pytest.fixture(scope="module")
def emulator(paper: Path) -> OnnxEngine:
    engine = load_engine(paper, emulate=True)
    assert isinstance(engine, OnnxEngine)
    return engine


def text(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(2, 258, count).tolist()


def close(actual: np.ndarray, wanted: np.ndarray, limit: float = CLOSE) -> None:
    wanted = np.asarray(wanted, np.float32)
    error = np.linalg.norm(actual - wanted)
    assert error <= limit * np.linalg.norm(wanted - (wanted.mean() if wanted.ndim == 1 else 0.0))


def test_the_compilers_own_trace_has_every_node_on_the_htp(artifact: Path) -> None:
    manifest = read_manifest(artifact)
    for graph in ("prefill_segment", "decode_step"):
        trace = json.loads((artifact / f"{graph}.sm8650.trace.json").read_text())
        assert trace["unsupported_nodes"] == []
        assert trace["summary"]["supported_nodes"] == trace["summary"]["total_onnx_nodes"] > 100
        assert trace["summary"]["qnn_subgraphs"] == 1
        assert trace["soc_traces"][0]["compilation_target"]["soc_model"] == 57
        compiled = manifest.details["compiled"][graph]
        assert compiled["cpu_macs"] == compiled["cpu_nodes"] == 0 < compiled["htp_macs"]


def test_the_emulator_computes_what_the_checkpoint_does_over_three_compressions(
    artifact: Path,
) -> None:
    """Every call is compared from the artifact's own state, caches and memory included."""
    checks = verify_artifact(artifact, model=str(artifact.with_name(f"{artifact.name}-checkpoint")))
    assert not [check for check in checks if not check.passed]
    names = {check.check for check in checks}
    assert {"parity:logits", "parity:k_cache", "checksum:sm8650.bin"} <= names


def test_one_binary_holds_the_weights_of_both_graphs_once(artifact: Path) -> None:
    manifest = read_manifest(artifact)
    npu = manifest.npu
    assert npu.binary in manifest.files and (npu.soc_model, npu.htp_arch) == (57, 75)
    for file in npu.files.values():
        assert npu.binary.encode() in (artifact / file).read_bytes()


def test_how_a_text_is_fed_changes_nothing_but_rounding(emulator: OnnxEngine) -> None:
    """At once, in pieces with partial chunks, and token by token, across compressions."""
    tokens = text(100)
    whole = Session(emulator)
    logits = whole.append(tokens)
    assert whole.compressions == 2
    for pieces in ([37, 1, 30, 32], [1] * 100):
        parts = Session(emulator)
        begin = 0
        for count in pieces:
            other = parts.append(tokens[begin : begin + count])
            begin += count
        assert parts.compressions == 2
        close(other, logits)
        for spec in whole.state.specs:
            close(parts.state.in_use(spec), whole.state.in_use(spec))


def test_what_fills_a_chunk_up_changes_no_bit(emulator: OnnxEngine) -> None:
    """The last chunk is partial. Tokens after its own ones reach neither cache nor logits."""
    session = Session(emulator)
    session.append(text(20))
    graph = emulator._prefill.graph
    results = []
    for filler in (0, 200):
        state = session.state.copy()
        bound = graph.bound(state)
        bound.filler = filler
        logits = graph.logits(state, np.array([text(9, seed=1)]))
        results.append([logits, *(array.copy() for array in state.arrays.values())])
        assert np.any(state.arrays["k_cache_0"][..., 20:29])
        assert not np.any(state.arrays["k_cache_0"][..., 29:])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_cpu_runs_the_same_graphs_where_there_is_no_npu(
    paper: Path, emulator: OnnxEngine, tmp_path: Path
) -> None:
    cpu, tokens = load_engine(paper), text(90)
    on_cpu, on_htp = Session(cpu), Session(emulator)
    close(on_htp.append(tokens), on_cpu.append(tokens))
    save_session(on_cpu, tmp_path / "text.session")
    opened, _ = load_session(emulator, tmp_path / "text.session")
    close(opened.append([5]), on_cpu.append([5]))


def test_an_artifact_for_the_cpu_is_not_emulated(tmp_path: Path) -> None:
    folder = tiny_artifact(tmp_path / "cpu")
    with pytest.raises(EdgeInfiniteError, match="is for the CPU, so there is no chip to emulate"):
        load_engine(folder, emulate=True)


def test_another_chips_artifact_is_refused_in_one_line(
    paper: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["verify", str(paper), "--soc", "sm8550"]) == 2
    assert "is compiled for sm8650, not for sm8550" in capsys.readouterr().err


def test_a_damaged_binary_is_found(paper: Path, tmp_path: Path) -> None:
    folder = tmp_path / "artifact"
    shutil.copytree(paper, folder)
    binary = bytearray((folder / "sm8650.bin").read_bytes())
    binary[1000] ^= 1
    (folder / "sm8650.bin").write_bytes(binary)
    with pytest.raises(EdgeInfiniteError, match=r"sm8650\.bin differs from what was exported"):
        load_engine(folder)
