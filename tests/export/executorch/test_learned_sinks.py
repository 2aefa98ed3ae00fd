"""Programs of models with learned sinks beside the scores, as Granite with windows and GPT-OSS.

The oracle is transformers' untouched model: of one layer, it says after evictions what it says of
the tokens that were kept (`evicted.py`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from evicted import kept_of
from recurrent_artifacts import assert_forks_undone_turns_and_files_go_on, export
from tiny_artifact import VOCABULARY, tiny_checkpoint
from transformers import PreTrainedModel

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens, tiny_family

PROGRAM = ("--backend", "executorch", "--quantize")


def tiny_model() -> PreTrainedModel:
    return tiny_family(
        "Granite with windows",
        num_hidden_layers=1,
        layer_types=["full_attention"],
        vocab_size=VOCABULARY,
        max_position_embeddings=512,
    ).requires_grad_(False)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("sinks") / "checkpoint", model=tiny_model())


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> ExecuTorchEngine:
    assert export(checkpoint, checkpoint.parent / "program", *PROGRAM, "none") == 0
    opened = load_engine(checkpoint.parent / "program", threads=1)
    assert isinstance(opened, ExecuTorchEngine)
    return opened


def test_in_any_split_it_computes_what_transformers_does_of_the_kept_tokens(
    engine: ExecuTorchEngine,
) -> None:
    model, tokens, wanted = tiny_model(), random_tokens(150), np.zeros(0)
    session = Session(engine, chunk_length=5)
    for start, end in ((0, 1), (1, 40), (40, 44), (44, 45), (45, 130), (130, 150)):
        logits = session.append(tokens[start:end])
        kept = kept_of(engine.geometry, tokens[:end])
        with torch.no_grad():
            wanted = model(torch.tensor([kept]), use_cache=False).logits[0, -1].numpy()
        assert np.abs(logits - wanted).max() < 1e-4
    assert session.compressions > 3
    assert np.abs(Session(engine).append(tokens) - wanted).max() < 1e-4


def test_forks_undone_turns_and_saved_sessions_go_on_bit_for_bit(
    engine: ExecuTorchEngine, tmp_path: Path
) -> None:
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path)


def test_rounded_weights_and_caches_pass_their_own_checks_and_go_on_in_onnx(
    checkpoint: Path, tmp_path: Path
) -> None:
    options = ("--cache-type", "int8", "--recall-slots", "32", "--scorer", "untrained")
    program, onnx = tmp_path / "program", tmp_path / "onnx"
    assert export(checkpoint, program, *PROGRAM, "int4", *options) == 0
    assert export(checkpoint, onnx, "--quantize", "none", *options) == 0
    assert load_manifest(program).parity["exact:logits"] < 1e-4
    tokens, whole = random_tokens(120), Session(load_engine(program, threads=1))
    wanted, session = whole.append(tokens), Session(whole.engine)
    session.append(tokens[:50])
    for number, (other, end) in enumerate(((load_engine(onnx), 90), (whole.engine, 120))):
        save_session(session, tmp_path / f"s{number}")
        session, _ = load_session(other, tmp_path / f"s{number}")
        assert session.taken_over
        logits = session.append(tokens[session.tokens_read : end])
    assert np.corrcoef(logits, wanted)[0, 1] > 0.9
