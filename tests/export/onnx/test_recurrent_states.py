"""An artifact of a model whose layers keep more than KV caches, from command line to session."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from recurrent_artifacts import (
    assert_forks_undone_turns_and_files_go_on,
    compare_with_pytorch,
    export,
)
from tiny_artifact import tiny_checkpoint
from tiny_lfm2 import tiny_lfm2
from tiny_mamba2 import tiny_bamba, tiny_falcon_h1, tiny_granite_h
from tiny_qwen3_5 import tiny_qwen3_5

from edgeinfinite.artifact.manifest import MANIFEST_FILE, load_manifest
from edgeinfinite.artifact.tensors import RECURRENT
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

MODELS = {
    "lfm2": tiny_lfm2,
    "qwen3_5": tiny_qwen3_5,
    "granite_h": tiny_granite_h,
    "bamba": tiny_bamba,
    "falcon_h1": tiny_falcon_h1,
}


@pytest.fixture(scope="module", params=MODELS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def checkpoint(kind, tmp_path_factory):
    return tiny_checkpoint(tmp_path_factory.mktemp(kind) / kind, model=MODELS[kind]())


@pytest.fixture(scope="module")
def artifact(checkpoint):
    assert export(checkpoint, checkpoint.parent / "float", "--quantize", "none") == 0
    return checkpoint.parent / "float"


@pytest.fixture(scope="module")
def engine(artifact):
    return load_engine(artifact, threads=1)


def test_a_long_text_is_what_pytorch_computes_in_any_split(engine, kind):
    compare_with_pytorch(engine, MODELS[kind]())


def test_forks_and_saved_sessions_hold_what_layers_keep(engine, tmp_path):
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path)


def test_a_call_that_fails_leaves_the_state_as_it_was(engine, monkeypatch):
    tokens = random_tokens(60)
    session, other = Session(engine), Session(engine)
    session.append(tokens[:30])
    other.append(tokens[:30])
    graph = engine._prefill.graph

    def fails(*_: object) -> None:
        raise EdgeInfiniteError("no memory")

    with monkeypatch.context() as patched, pytest.raises(EdgeInfiniteError):
        patched.setattr(graph, "run", fails)
        session.append(tokens[30:])
    np.testing.assert_array_equal(session.append([]), other.append(tokens[30:]))


def test_rounded_weights_and_caches_pass_their_own_checks(checkpoint, kind, tmp_path):
    options = ("--quantize", "int4", "--cache-type", "int8")
    assert export(checkpoint, tmp_path / "artifact", *options) == 0
    manifest = load_manifest(tmp_path / "artifact")
    held = [spec for spec in manifest.state if spec.role in RECURRENT]
    assert {spec.dtype for spec in held} == {"float32"}
    assert {spec.role for spec in held} == set(RECURRENT[: 1 + (kind != "lfm2")])
    for role in {spec.role for spec in held}:
        assert manifest.parity[f"parity:{role}"] < 0.1
    assert main(["verify", str(tmp_path / "artifact"), "--model", str(checkpoint)]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "reencode"), "give --policy carry"),
        (("--target", "qnn-htp", "--soc", "sm8650"), "export it for the CPU"),
    ],
    ids=["reencode", "npu"],
)
def test_what_cannot_carry_the_states_is_refused_in_a_line(
    checkpoint, tmp_path, capsys, options, said
):
    assert export(checkpoint, tmp_path / "artifact", *options) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "artifact").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec.update(updates=None), "doesn't carry on conv_state_0"),
        (lambda spec: spec.update(role="lstm_state"), "lstm_state"),
        (lambda spec: spec.update(dims="B K D"), "the layout 'B K D'"),
        (lambda spec: spec.update(layer=5000), "of layer 5000"),
    ],
    ids=["stands still", "unknown kind", "layout", "layer"],
)
def test_a_manifest_that_loses_a_state_is_refused_by_name(artifact, tmp_path, change, said):
    broken = tmp_path / "artifact"
    shutil.copytree(artifact, broken)
    text = json.loads((broken / MANIFEST_FILE).read_text("utf-8"))
    text.pop("own_sha256", None)
    outputs = text["graphs"]["prefill_segment"]["outputs"]
    change(next(spec for spec in outputs if spec["name"] == "conv_state_0_out"))
    (broken / MANIFEST_FILE).write_text(json.dumps(text), "utf-8")
    with pytest.raises(EdgeInfiniteError, match=said):
        load_manifest(broken)
