"""An export leaves one whole artifact, or nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from pathlib import Path

import onnx
import pytest
import torch
from tiny_artifact import tiny_artifact, tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import load_manifest, read_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export import exporter
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, random_tokens, tiny_llama

GEOMETRY = Geometry(segment_length=16, sink_length=4, window_length=8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("artifact") / "artifact", "--quantize", "int8")


def test_no_tensor_is_stored_twice(artifact):
    seen: dict[tuple[str, int], str] = {}
    places: set[tuple[str, int]] = set()
    for file in artifact.glob("*.onnx"):
        for tensor in onnx.load(file, load_external_data=False).graph.initializer:
            where = {entry.key: entry.value for entry in tensor.external_data}
            if not where:
                continue
            place = (where["location"], int(where["offset"]))
            if place in places:
                continue
            places.add(place)
            data = (artifact / place[0]).read_bytes()[place[1] :][: int(where["length"])]
            key = (hashlib.sha256(data).hexdigest(), len(data))
            assert key not in seen, f"{tensor.name} and {seen[key]} hold the same bytes"
            seen[key] = tensor.name
    assert len(seen) > 4


def test_prefill_and_decode_share_one_weights_file(artifact):
    files = {graph.file for graph in read_manifest(artifact).graphs.values()}
    assert {"prefill_segment.onnx", "decode_step.onnx", "compress_memory.onnx"} == files
    assert [file.name for file in artifact.glob("*.data")] == ["weights.data"]


def test_the_manifest_lists_quantized_and_unquantized_weights(artifact):
    quantization = read_manifest(artifact).quantization
    assert "model.embed_tokens.weight" in quantization.quantized
    assert "model.layers.0.mlp.up_proj.weight" in quantization.quantized
    assert "model.norm.weight" in quantization.unquantized
    assert not set(quantization.quantized) & set(quantization.unquantized)


def test_the_umask_decides_who_may_read_an_artifacts_files(artifact):
    files = [path for path in artifact.rglob("*") if path.is_file()]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
    assert "gate.safetensors" in modes
    assert set(modes.values()) == {modes["manifest.json"]}, modes


def test_the_artifact_contains_no_local_path(artifact):
    for file in artifact.iterdir():
        assert str(artifact.parent).encode() not in file.read_bytes()


@pytest.mark.parametrize(("kv_heads", "recipe"), [(8, "none"), (1, "none"), (1, "int4")])
def test_heads_are_paired_as_in_transformers(tmp_path, recipe, kv_heads):
    """R = 1 and 8 query heads per KV head; the CLI's tiny checkpoint has R = 2, SmolLM2 R = 3."""
    folder = tiny_checkpoint(tmp_path / "checkpoint")
    (folder / "model.safetensors").unlink()
    model = tiny_llama(heads=8, kv_heads=kv_heads, vocabulary=258)
    model.save_pretrained(folder)
    output = export_artifact(
        ExportOptions(str(folder), tmp_path / "artifact", quantize=recipe, geometry=GEOMETRY)
    )
    if recipe != "none":
        return  # the export's own parity check has passed
    tokens = random_tokens(GEOMETRY.capacity - 1)
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0, -1]
    assert_close(Session(load_engine(output)).append(tokens), expected, 1e-4)


def test_an_interrupted_export_leaves_nothing_behind(checkpoint, tmp_path, monkeypatch):
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, "check_parity", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_artifact(ExportOptions(str(checkpoint), tmp_path / "new" / "a", geometry=GEOMETRY))
    assert list(tmp_path.iterdir()) == []


def test_an_export_with_wrong_results_is_refused(checkpoint, tmp_path, monkeypatch):
    working = exporter.TorchEngine

    def other_weights(model):
        model.model.layers[0].mlp.up_proj.weight.data.mul_(1.1)
        return working(model)

    monkeypatch.setattr(exporter, "TorchEngine", other_weights)
    with pytest.raises(EdgeInfiniteError, match="doesn't compute what the checkpoint does"):
        export_artifact(ExportOptions(str(checkpoint), tmp_path / "a", geometry=GEOMETRY))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_artifact_is_not_replaced(checkpoint, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(EdgeInfiniteError, match="not an artifact"):
        export_artifact(ExportOptions(str(checkpoint), tmp_path, geometry=GEOMETRY))
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_artifact_is_replaced_by_a_new_one(artifact, checkpoint, tmp_path):
    output = tmp_path / "artifact"
    shutil.copytree(artifact, output)
    export_artifact(ExportOptions(str(checkpoint), output, geometry=GEOMETRY))
    assert read_manifest(output).quantization.recipe == "none"
    assert [path.name for path in tmp_path.iterdir()] == ["artifact"]


DAMAGES = {
    "missing file": lambda folder: (folder / "weights.data").unlink(),
    "truncated file": lambda folder: _truncate(folder / "weights.data"),
    "flipped byte": lambda folder: _flip(folder / "weights.data"),
    "newer schema": lambda folder: _edit(folder, schema_version=99),
    "older schema": lambda folder: _edit(folder, schema_version=1),
    "odd manifest": lambda folder: _edit(folder, geometry={"segment_length": "long"}),
    "file outside": lambda folder: _edit(folder, files={"../x": {"sha256": "0", "size": 1}}),
}


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _edit(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_artifact_is_refused_in_one_line(artifact, tmp_path, capsys, damage):
    folder = tmp_path / "artifact"
    shutil.copytree(artifact, folder)
    DAMAGES[damage](folder)
    with pytest.raises(EdgeInfiniteError):
        load_manifest(folder)
    assert main(["generate", str(folder), "--prompt", "hello"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("edgeinfinite: error: ") and error.count("\n") == 1


def test_verify_finds_another_checkpoint_and_compares_two_artifacts(artifact, tmp_path):
    checkpoint = artifact.with_name("artifact-checkpoint")
    assert all(check.passed for check in verify_artifact(artifact, model=str(checkpoint)))
    other = tiny_checkpoint(tmp_path / "other")
    model = tiny_llama()
    model.config.vocab_size = read_manifest(artifact).backbone.vocabulary
    torch.manual_seed(9)
    type(model)(model.config).save_pretrained(other)
    failed = [c.check for c in verify_artifact(artifact, model=str(other)) if not c.passed]
    assert "weights" in failed and "parity:logits" in failed
    exact = tiny_artifact(tmp_path / "exact")
    told: list[tuple[str, float]] = []
    found = verify_artifact(exact, against=artifact, progress=lambda *step: told.append(step))
    shares = [share for _, share in told]
    assert len(set(shares)) > 3 and shares == sorted(shares) and 0 <= shares[0] < shares[-1] <= 1
    checks = {check.check: check for check in found}
    assert 0 < checks["parity:logits"].value < 0.5
    assert checks["greedy_agreement"].value > 0.5
