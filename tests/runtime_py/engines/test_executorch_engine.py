"""The ExecuTorch engine on a really exported tiny model, beside PyTorch."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from manifest_edit import edit_manifest
from tiny_artifact import tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.artifact.tensors import DECODE
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.runtime_py.engines import Engine, executorch_engine, load_engine
from edgeinfinite.runtime_py.engines.executorch_engine import (
    ONLY_PACKED,
    ExecuTorchEngine,
    _executorch,
)
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.engines.xnnpack_options import share_packed_weights
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State
from tiny import assert_close

GEOMETRY = Geometry(sink_length=4, segment_length=32, window_length=8)
CAPACITY = GEOMETRY.capacity
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact in float32 with gates that are wide open, so that an error in M shows."""
    place = tmp_path_factory.mktemp("executorch")
    checkpoint = tiny_checkpoint(place / "checkpoint")
    model = _attached(checkpoint, "untrained")
    torch.manual_seed(1)
    for layer in attention_layers(model):
        for tensor in (layer.memory_gate.g, layer.memory_gate.w1.weight):
            torch.nn.init.normal_(tensor)
        torch.nn.init.normal_(layer.memory_gate.w2.weight)
    gate = place / "gate.safetensors"
    save_gate(gate, attention_layers(model), {})
    lengths = {name.replace("_", "-"): str(n) for name, n in GEOMETRY.to_dict().items()}
    options = [part for name in ("segment-length", "sink-length", "window-length")
               for part in (f"--{name}", lengths[name])]  # fmt: skip
    command = ["export", "--model", str(checkpoint), "--backend", "executorch", "--gate", str(gate)]
    assert main([*command, *options, "--output", str(place / "artifact")]) == 0
    return place / "artifact"


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    return load_engine(folder)


@pytest.fixture(scope="module")
def reference(folder: Path) -> TorchEngine:
    gate = folder.parent / "gate.safetensors"
    return TorchEngine(_attached(folder.parent / "checkpoint", str(gate)))


def _attached(checkpoint: Path, gate: str) -> torch.nn.Module:
    model = load_backbone(str(checkpoint)).model
    return attach(model, EdgeInfiniteConfig(GEOMETRY, gate))


def tokens(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(2, 250, count).tolist()


def caches(state: State) -> dict[str, np.ndarray]:
    """With the axes `B K C D`, whatever the engine's are."""
    return {
        spec.name: state.arrays[spec.name].transpose([spec.dims.split().index(a) for a in "BKCD"])
        for spec in state.specs
        if "_cache_" in spec.name
    }


def assert_same(one: Session, other: Session) -> None:
    assert (one.tokens_read, one.compressions) == (other.tokens_read, other.compressions)
    assert one.residual == other.residual
    assert one.cached == other.cached
    for name in ("memory", "memory_norm", "has_memory"):
        # Sums of so many terms round as their largest entries do: 5e-7 of it is what is seen here.
        assert_close(one.state.arrays[name], other.state.arrays[name], 2e-6)
    others = caches(other.state)
    for name, cache in caches(one.state).items():
        used = slice(one.cached)
        np.testing.assert_allclose(cache[:, :, used], others[name][:, :, used], **TOLERANCE)


# Around every boundary: sinks, segment, capacity, and the compressions that follow.
LENGTHS = sorted(
    {n + d for n in (1, 4, 36, CAPACITY, CAPACITY + 32, 140) for d in (-1, 0, 1)} - {0}
)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_text_gives_the_same_state_and_logits_as_in_pytorch(
    engine: Engine, reference: TorchEngine, length: int
) -> None:
    text = tokens(length)
    session, wanted = Session(engine), Session(reference)
    np.testing.assert_allclose(session.append(text), wanted.append(text), **TOLERANCE)
    assert_same(session, wanted)


@pytest.mark.parametrize("chunk_length", [1, 2, 3, 7, 31, 32, 1000])
def test_the_chunk_length_changes_nothing(
    engine: Engine, reference: TorchEngine, chunk_length: int
) -> None:
    text = tokens(101)
    session, wanted = Session(engine, chunk_length=chunk_length), Session(reference)
    np.testing.assert_allclose(session.append(text), wanted.append(text), **TOLERANCE)
    assert_same(session, wanted)


@pytest.mark.parametrize("seed", range(12))
def test_any_split_into_turns_and_single_tokens_is_one_prefill(
    engine: Engine, reference: TorchEngine, seed: int
) -> None:
    random = np.random.default_rng(seed)
    text = tokens(int(random.integers(2, 150)), seed)
    session, wanted = Session(engine), Session(reference)
    expected = wanted.append(text)
    left = list(text)
    while left:
        size = int(random.choice([1, 1, 2, 5, 32, 60]))
        part, left = left[:size], left[size:]
        # Teacher-forced decode: token by token.
        pieces = [[token] for token in part] if random.random() < 0.5 else [part]
        for piece in pieces:
            logits = session.append(piece)
    np.testing.assert_allclose(logits, expected, **TOLERANCE)
    assert_same(session, wanted)


def test_the_callers_arrays_are_written_where_they_are(engine: Engine) -> None:
    state = engine.new_state()
    addresses = {name: array.ctypes.data for name, array in state.arrays.items()}
    for start, step in ((0, [5, 6, 7]), (3, [8])):
        before = {name: array.copy() for name, array in state.arrays.items()}
        state.length[:] = start
        run = engine.prefill_segment if len(step) > 1 else engine.decode_step
        run(np.array([step]), state)
        for name, array in state.arrays.items():
            if "_cache_" in name:
                new = slice(start, start + len(step))
                assert np.abs(array[:, new]).sum() > 0
                array[:, new] = before[name][:, new]
            if name != "length":
                np.testing.assert_array_equal(array, before[name])
        run(np.array([step]), state)
    assert addresses == {name: array.ctypes.data for name, array in state.arrays.items()}


def test_the_program_plans_no_memory_for_caches(engine: ExecuTorchEngine) -> None:
    manifest_state = {spec.name: spec for spec in engine.new_state().specs}
    for method in engine._methods.values():
        meta = method._method.method_meta()
        for index in range(meta.num_inputs()):
            assert not meta.input_tensor_meta(index).is_memory_planned()
        cache = np.prod(manifest_state["k_cache_0"].shape) * 4
        outputs = [meta.output_tensor_meta(i).nbytes() for i in range(meta.num_outputs())]
        assert method.spec.outputs[0].name != "logits" or max(outputs) < cache


def test_slots_from_length_on_are_never_attended(engine: Engine) -> None:
    """After a compression they hold old rows, and decode is given more slots than it needs."""
    results = []
    for seed in (None, 1, 2):
        state = engine.new_state()
        for name, array in state.arrays.items():
            if "_cache_" in name and seed is not None:
                array[...] = np.random.default_rng(seed).normal(0, 30, array.shape)
        logits = [engine.prefill_segment(np.array([[5, 6, 7]]), state)]
        for start in (0, 3, 4):
            state.length[:] = start
            logits.append(engine.decode_step(np.array([[8]]), state))
        caches = [array[:, :5] for name, array in state.arrays.items() if "_cache_" in name]
        results.append((logits, caches))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            for a, b in zip(one, two, strict=True):
                np.testing.assert_array_equal(a, b)


def test_packed_weights_are_shared_and_outlive_another_engine(folder: Path, engine: Engine) -> None:
    assert share_packed_weights(_executorch()[1], True)
    text = tokens(60)
    wanted = Session(engine).append(text)
    other = load_engine(folder)
    np.testing.assert_array_equal(Session(other).append(text), wanted)
    del other
    gc.collect()
    np.testing.assert_array_equal(Session(engine).append(text), wanted)
    np.testing.assert_array_equal(Session(load_engine(folder)).append(text), wanted)


def test_an_artifact_without_the_entry_does_not_share_weights(
    folder: Path, tmp_path: Path, engine: Engine
) -> None:
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    edit_manifest(old, lambda manifest: manifest["details"][DECODE].pop(ONLY_PACKED))
    asked: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            executorch_engine, "share_packed_weights", lambda _, share: asked.append(share)
        )
        logits = [Session(load_engine(place)).append(tokens(60)) for place in (old, folder)]
    assert asked == [False, True]
    assert not share_packed_weights(_executorch()[1], False)
    np.testing.assert_array_equal(*logits)


def test_later_calls_do_not_change_returned_logits(engine: Engine) -> None:
    state = engine.new_state()
    first = engine.prefill_segment(np.array([[5, 6]]), state)
    kept = first.copy()
    state.length[:] = 2
    engine.decode_step(np.array([[7]]), state)
    engine.prefill_segment(np.array([[9, 9]]), state)
    np.testing.assert_array_equal(first, kept)


def test_a_second_session_beside_the_first_disturbs_nothing(engine: Engine) -> None:
    alone, one, other = Session(engine), Session(engine), Session(engine)
    text, noise = tokens(90, 1), tokens(90, 2)
    for token in text:
        expected = alone.append([token])
    for token, unwanted in zip(text, noise, strict=True):
        logits = one.append([token])
        other.append([unwanted, token])
    np.testing.assert_array_equal(logits, expected)
    for name, array in alone.state.arrays.items():
        np.testing.assert_array_equal(one.state.arrays[name], array)


def test_a_second_engine_shares_the_threads_of_the_first(folder: Path, engine: Engine) -> None:
    threads = engine._runtime._threadpool_get_thread_count()
    for asked in (None, threads):
        other = load_engine(folder, threads=asked)
        text = tokens(60)
        np.testing.assert_allclose(
            Session(other).append(text), Session(engine).append(text), **TOLERANCE
        )
    with pytest.raises(EdgeInfiniteError, match=f"runs on {threads} threads .* ask for {threads}"):
        load_engine(folder, threads=threads + 1)


def test_threads_are_free_again_when_the_last_engine_is_gone(folder: Path) -> None:
    """In a process of its own: here the other tests' engines are open."""
    program = """
import sys
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
for threads in (1, 2, 1):
    engine = load_engine(sys.argv[1], threads=threads)
    assert engine._runtime._threadpool_get_thread_count() == threads
    Session(engine).append(list(range(5, 90)))
    del engine
"""
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True, timeout=120)


def test_running_needs_no_compiler_and_prints_nothing(folder: Path) -> None:
    program = """
import sys
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
Session(load_engine(sys.argv[1])).append([5, 6, 7])
assert not {"executorch.exir", "torchao", "transformers"} & set(sys.modules)
"""
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("kept", [0, 10, 1000, 0.5, 0.99])
def test_a_truncated_program_is_refused_with_one_clear_line(
    folder: Path, tmp_path: Path, kept: float, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    program = broken / "model.pte"
    data = program.read_bytes()
    program.write_bytes(data[: int(kept if kept >= 1 or kept == 0 else kept * len(data))])
    with pytest.raises(EdgeInfiniteError, match=r"model\.pte has .* bytes"):
        load_engine(broken)
    capfd.readouterr()
    assert main(["generate", str(broken), "--prompt", "x"]) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("edgeinfinite: error: ")


def test_a_program_that_executorch_cannot_read_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(b"no program" * 100)
    with pytest.raises(EdgeInfiniteError, match="can't be loaded by executorch"):
        ExecuTorchEngine(tmp_path, load_manifest(folder))


def test_a_call_that_fails_is_one_clear_error(engine: Engine) -> None:
    with pytest.raises(EdgeInfiniteError, match="executorch failed in prefill_segment: "):
        engine.prefill_segment(np.array([[10**6, 3]]), engine.new_state())


def test_without_executorch_the_error_gives_the_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "executorch.extension.pybindings", None)
    with pytest.raises(EdgeInfiniteError, match=r"needs the package .*pip install"):
        load_engine(folder)


def test_without_a_gate_there_is_no_memory(folder: Path, tmp_path: Path) -> None:
    checkpoint = folder.parent / "checkpoint"
    options = ["--segment-length", "32", "--sink-length", "4", "--window-length", "8"]
    options += ["--policy", "reencode"]
    command = ["export", "--model", str(checkpoint), "--backend", "executorch", "--gate", "none"]
    assert main([*command, *options, "--output", str(tmp_path / "plain")]) == 0
    plain = load_engine(tmp_path / "plain")
    reference = TorchEngine(_attached(checkpoint, "none"))
    text = tokens(100)
    session, wanted = Session(plain), Session(reference)
    np.testing.assert_allclose(session.append(text), wanted.append(text), **TOLERANCE)
    assert "compress_memory" not in load_manifest(tmp_path / "plain").graphs
