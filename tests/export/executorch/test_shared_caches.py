"""Programs of Gemma 3n and 4: caches that layers share, heads by layer, embeddings by layer.

The oracle is transformers' untouched model with its own cache, from which what the session has
evicted is cut (`untouched_gemma4.py`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from recurrent_artifacts import GEOMETRY, assert_forks_undone_turns_and_files_go_on, export
from tiny_artifact import tiny_checkpoint
from tiny_gemma4 import FEW, SMALL
from untouched_gemma4 import assert_any_split_is_untouched

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.artifact.tensors import DECODE
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

EVICTING = Geometry(*(int(length) for length in GEOMETRY[1::2]), policy="carry")
PROGRAM = ("--backend", "executorch", "--quantize", "none")
PARTS = {"small gemma4": 2, "small gemma3n": 1}
"""XNNPACK's of `decode_step`. Gemma 4's are divided by what layers get of a token's embeddings."""


@pytest.fixture(scope="module", params=SMALL)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def checkpoint(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("gemma") / "gemma", model=SMALL[kind]())


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> ExecuTorchEngine:
    assert export(checkpoint, checkpoint.parent / "program", *PROGRAM) == 0
    opened = load_engine(checkpoint.parent / "program", threads=1)
    assert isinstance(opened, ExecuTorchEngine)
    return opened


def test_in_any_split_it_computes_what_transformers_does_from_the_kept_pairs(
    engine: ExecuTorchEngine, kind: str
) -> None:
    assert_any_split_is_untouched(engine, kind, EVICTING)


def test_a_token_goes_through_few_parts_of_xnnpacks(
    engine: ExecuTorchEngine, checkpoint: Path, kind: str
) -> None:
    details = load_manifest(checkpoint.parent / "program").details
    assert details[DECODE]["partitions"] == PARTS[kind]


def test_forks_undone_turns_and_saved_sessions_go_on_bit_for_bit(
    engine: ExecuTorchEngine, tmp_path: Path
) -> None:
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path)


@pytest.mark.parametrize("kind", ["small gemma4"], indirect=True, scope="module")
def test_rounded_weights_caches_and_recall_slots_pass_their_own_checks(
    checkpoint: Path, tmp_path: Path
) -> None:
    """And a text in such a cache goes on in ONNX Runtime and comes back."""
    options = ("--cache-type", "int8", "--recall-slots", "32", "--scorer", "untrained")
    program, onnx = tmp_path / "program", tmp_path / "onnx"
    assert (
        export(checkpoint, program, "--backend", "executorch", "--quantize", "int4", *options) == 0
    )
    assert export(checkpoint, onnx, "--quantize", "none", *options) == 0
    manifest = load_manifest(program)
    assert manifest.backbone.layers == FEW["num_hidden_layers"] - FEW["num_kv_shared_layers"]
    table = "model.embed_tokens_per_layer.weight"
    assert manifest.quantization.quantized[table] == "int8 symmetric, one scale a row and layer"
    assert manifest.parity["exact:logits"] < 1e-4
    engines = [load_engine(folder, threads=1) for folder in (program, onnx)]
    tokens, session = random_tokens(120), Session(engines[0])
    session.append(tokens[:50])
    for number, (other, end) in enumerate(zip(engines[::-1], (90, 120), strict=True)):
        save_session(session, tmp_path / f"s{number}")
        session, _ = load_session(other, tmp_path / f"s{number}")
        assert session.taken_over
        logits = session.append(tokens[session.tokens_read : end])
    whole = Session(engines[0]).append(tokens)
    assert np.corrcoef(logits, whole)[0, 1] > 0.9
