"""Artifacts of Gemma 3n and 4: caches that layers share, heads by layer, embeddings by layer."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
from recurrent_artifacts import GEOMETRY, assert_forks_undone_turns_and_files_go_on, export
from tiny_artifact import tiny_checkpoint
from tiny_gemma4 import MODELS, OWN
from untouched_gemma4 import assert_any_split_is_untouched

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.looked_up import LOOKED_UP
from edgeinfinite.artifact.manifest import MANIFEST_FILE, load_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.passes import split_head
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

EVICTING = Geometry(*(int(length) for length in GEOMETRY[1::2]), policy="carry")
_TRIED = {"gemma3n": ("int4",), "gemma4": ("int4", "int8"), "gemma4_unified": ("none",)}
"""Which of three exports are tried."""

RECALLING = ("--recall-slots", "32", "--scorer", "untrained")
ROUNDED = {
    "int4": ("--quantize", "int4", *RECALLING),
    "int8": ("--quantize", "int8", "--cache-type", "float16"),
    "int8-cache": ("--quantize", "none", "--cache-type", "int8", *RECALLING),
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


def test_in_any_split_it_computes_what_transformers_does_from_the_kept_pairs(engine, kind):
    assert_any_split_is_untouched(engine, kind, EVICTING)


def test_forks_and_saved_sessions_go_on_bit_for_bit(engine, tmp_path):
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path)


@pytest.mark.parametrize("options", ROUNDED.values(), ids=ROUNDED)
def test_rounded_weights_and_caches_pass_their_own_checks(checkpoint, kind, tmp_path, options):
    if options[1] not in _TRIED[kind]:
        pytest.skip("an export takes half a minute; another model does it")
    artifact = tmp_path / "artifact"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(split_head, "LARGE_BYTES", 2048)
        assert export(checkpoint, artifact, *options) == 0
    manifest = load_manifest(artifact)
    assert manifest.backbone.layers == OWN
    scored = [spec.name for spec in manifest.state if spec.role == "scores"]
    assert scored == (["scores_1"] if "--recall-slots" in options else [])
    assert manifest.parity["parity:logits"] < 0.1
    assert main(["verify", str(artifact), "--model", str(checkpoint)]) == 0
    if kind != "gemma4_unified":
        _assert_embeddings_by_layer_are_looked_up_where_they_lie(artifact)


def _assert_embeddings_by_layer_are_looked_up_where_they_lie(artifact):
    manifest = load_manifest(artifact)
    graph = onnx.load(artifact / "prefill_segment.onnx", load_external_data=False).graph
    names = {value.name for value in graph.initializer if "embed_tokens_per_layer" in value.name}
    table = {name for name in names if not name.endswith("embed_scale")}
    readers = {node.op_type for node in graph.node if table.intersection(node.input)}
    assert readers == {"Gather"} and table
    looked_up = {entry["name"] for entry in manifest.details[LOOKED_UP]}
    assert table <= looked_up
    session = Session(load_engine(artifact, threads=1))
    assert np.isfinite(session.append(random_tokens(60))).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "qnn-htp", "--soc", "sm8650"), "export it for the CPU"),
        (("--gate", "untrained"), "give --gate none"),
    ],
    ids=["npu", "gate"],
)
def test_what_cannot_read_such_caches_is_refused_in_a_line(
    checkpoint, tmp_path, capsys, options, said
):
    assert export(checkpoint, tmp_path / "artifact", *options) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "artifact").exists()


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([[2, 16]] * 3, "the heads of 3 layers"),
        ([[2, 16], [3, 32], [2, 16], [2, 16]], "layer 1 has 3 KV heads"),
        ([[2, 16], [1, 64], [2, 16], [2, 16]], "layer 1 has 1 KV heads of 64"),
        ([[2, 16]] * 4, "it must be"),
    ],
    ids=["too few", "not shared", "too large", "another cache"],
)
def test_a_manifest_with_other_heads_is_refused_by_name(kind, artifact, tmp_path, heads, said):
    if kind == "gemma3n":
        pytest.skip("its heads are the same in all layers")
    broken = tmp_path / "artifact"
    shutil.copytree(artifact, broken)
    text = json.loads((broken / MANIFEST_FILE).read_text("utf-8"))
    text.pop("own_sha256", None)
    text["backbone"]["heads"] = heads
    (broken / MANIFEST_FILE).write_text(json.dumps(text), "utf-8")
    with pytest.raises(EdgeInfiniteError, match=said):
        load_manifest(broken)
