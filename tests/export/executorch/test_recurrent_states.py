"""A program of a model in which most layers don't attend, from command line to session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Lfm2ForCausalLM, Lfm3Config, Lfm3ForCausalLM

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from recurrent_artifacts import assert_forks_undone_turns_and_files_go_on
from tiny_artifact import VOCABULARY, tiny_checkpoint
from tiny_lfm2 import tiny_lfm2

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

GEOMETRY = ["--segment-length", "16", "--sink-length", "4", "--window-length", "24"]
STATES = [f"conv_state_{number}" for number in range(4)]


def export(checkpoint: Path, output: Path, *options: str) -> Path:
    command = ["export", "--model", str(checkpoint), "--output", str(output), *GEOMETRY, *options]
    assert main(command) == 0
    return output


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("lfm2") / "lfm2", model=tiny_lfm2())


@pytest.fixture(scope="module")
def artifact(checkpoint: Path) -> Path:
    options = ("--backend", "executorch", "--quantize", "none")
    return export(checkpoint, checkpoint.parent / "program", *options)


@pytest.fixture(scope="module")
def engine(artifact: Path) -> ExecuTorchEngine:
    opened = load_engine(artifact, threads=1)
    assert isinstance(opened, ExecuTorchEngine)
    return opened


def assert_same_states(session: Session, wanted: Session) -> None:
    for name in STATES:
        found, expected = session.state.arrays[name], wanted.state.arrays[name]
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_long_text_is_what_pytorch_computes_in_any_split(engine: ExecuTorchEngine) -> None:
    model = attach(tiny_lfm2(), EdgeInfiniteConfig(engine.geometry, NO_GATE))
    tokens = random_tokens(150)
    wanted, session = Session(TorchEngine(model)), Session(engine)
    for start, end in ((0, 1), (1, 3), (3, 40), (40, 41), (41, 130), (130, 150)):
        expected = wanted.append(tokens[start:end])
        np.testing.assert_allclose(session.append(tokens[start:end]), expected, atol=1e-3)
        assert_same_states(session, wanted)
    assert session.compressions > 3


def test_longer_kernels_than_calls_and_biases_are_computed(tmp_path: Path) -> None:
    torch.manual_seed(1)
    config = tiny_lfm2().config
    config.conv_L_cache, config.conv_bias = 5, True
    model = Lfm2ForCausalLM(config).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    checkpoint = tiny_checkpoint(tmp_path / "lfm2", model=model)
    options = ("--backend", "executorch", "--quantize", "none")
    engine = load_engine(export(checkpoint, tmp_path / "program", *options), threads=1)
    attach(model, EdgeInfiniteConfig(engine.geometry, NO_GATE))
    tokens = random_tokens(60)
    wanted, session = Session(TorchEngine(model)), Session(engine)
    for start, end in ((0, 2), (2, 3), (3, 60)):  # two tokens of a kernel of five
        expected = wanted.append(tokens[start:end])
        np.testing.assert_allclose(session.append(tokens[start:end]), expected, atol=1e-3)
        assert_same_states(session, wanted)


def test_lfm3_computes_the_same_with_its_windows_and_longer_kernels(tmp_path: Path) -> None:
    torch.manual_seed(2)
    config = Lfm3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        layer_types=["conv", "sliding_attention", "conv", "full_attention"],
        sliding_window=10,
        initializer_range=0.2,
        pad_token_id=None,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = Lfm3ForCausalLM(config).eval().requires_grad_(False)
    checkpoint = tiny_checkpoint(tmp_path / "lfm3", model=model)
    options = ("--backend", "executorch", "--quantize", "none")
    engine = load_engine(export(checkpoint, tmp_path / "program", *options), threads=1)
    attach(model, EdgeInfiniteConfig(engine.geometry, NO_GATE))
    tokens = random_tokens(120)
    wanted, session = Session(TorchEngine(model)), Session(engine)
    for start, end in ((0, 5), (5, 6), (6, 70), (70, 120)):
        expected = wanted.append(tokens[start:end])
        np.testing.assert_allclose(session.append(tokens[start:end]), expected, atol=1e-3)
    for name in STATES[:2]:
        found, expected = session.state.arrays[name], wanted.state.arrays[name]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    details = load_manifest(tmp_path / "program").details
    assert details[DECODE]["partitions"] == 1


def test_forks_undone_turns_and_saved_sessions_hold_the_convolutions(
    engine: ExecuTorchEngine, tmp_path: Path
) -> None:
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path)


def test_a_text_goes_on_in_another_back_end_and_comes_back(
    engine: ExecuTorchEngine, checkpoint: Path, tmp_path: Path
) -> None:
    onnx = load_engine(export(checkpoint, tmp_path / "onnx", "--quantize", "none"), threads=1)
    tokens = random_tokens(120)
    whole, session = Session(engine), Session(engine)
    wanted = whole.append(tokens)
    session.append(tokens[:50])
    for number, (other, end) in enumerate(((onnx, 90), (engine, 120))):
        save_session(session, tmp_path / f"s{number}")
        session, _ = load_session(other, tmp_path / f"s{number}")
        assert session.taken_over
        logits = session.append(tokens[session.tokens_read : end])
    np.testing.assert_allclose(logits, wanted, atol=1e-3)
    assert_same_states(session, whole)


def test_a_call_of_several_pieces_that_fails_leaves_the_state_as_it_was(
    engine: ExecuTorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = random_tokens(40)
    session, other = Session(engine), Session(engine)
    session.append(tokens[:20])
    wanted = other.append(tokens)
    prefill, decode = engine._methods[PREFILL], engine._methods[DECODE]
    monkeypatch.setattr(prefill, "most_tokens", 19)

    def fails(*_: object) -> None:
        raise EdgeInfiniteError("no memory")

    with monkeypatch.context() as patched, pytest.raises(EdgeInfiniteError, match="no memory"):
        patched.setattr(decode, "run", fails)  # the second piece has one token
        session.append(tokens[20:])
    np.testing.assert_allclose(session.append([]), wanted, atol=1e-4)
    assert_same_states(session, other)


def test_decode_is_one_part_of_xnnpacks_and_prefill_two(artifact: Path) -> None:
    details = load_manifest(artifact).details
    for name, parts in ((PREFILL, 2), (DECODE, 1)):
        assert details[name]["partitions"] == parts
        assert details[name]["passes"]["short_convolutions"] == len(STATES)
        assert not any("conv" in kind for kind in details[name]["undelegated"])


@pytest.mark.parametrize(
    "options",
    [
        ("--quantize", "int4", "--cache-type", "int8"),
        ("--quantize", "int8", "--scorer", "untrained", "--recall-slots", "32"),
    ],
    ids=["int4", "int8-recall"],
)
def test_rounded_weights_caches_and_recall_slots_pass_their_own_checks(
    checkpoint: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    folder = export(checkpoint, tmp_path / "artifact", "--backend", "executorch", *options)
    held = [spec for spec in load_manifest(folder).state if spec.role == "conv_state"]
    assert [spec.dtype for spec in held] == ["float32"] * 4
    checks = {check.check: check for check in verify_artifact(folder, model=str(checkpoint))}
    assert [check for check in checks.values() if not check.passed] == []
    assert checks["parity:conv_state"].value < 0.1
    assert checks["exact:conv_state"].value < 1e-5
