"""The gates that come with the package, which an export uses by default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_artifact import GEOMETRY, tiny_checkpoint
from tiny_texts import tiny_texts

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.models import shipped
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone, parameters_digest
from edgeinfinite.models.shipped import shipped_gate
from edgeinfinite.models.trained_file import read_metadata

GATES = sorted((shipped.PACKAGE / "gates").glob("*.safetensors"))


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder with a checkpoint and a package in which a gate is shipped for it."""
    folder = tmp_path_factory.mktemp("package")
    checkpoint, texts = tiny_checkpoint(folder / "tiny"), folder / "texts"
    for made in (texts, folder / "gates"):
        made.mkdir()
    tiny_texts(texts, 2)
    train = ["train-gate", "--model", str(checkpoint), "--data", str(texts), *GEOMETRY]
    train += ["--output", str(folder / "gates" / "tiny.safetensors"), "--token-cache"]
    assert main([*train, str(folder / "cache"), "--samples", "1", "--segments", "2"]) == 0
    return folder


def export(package: Path, output: Path, *more: str) -> int:
    command = ["export", "--model", str(package / "tiny"), "--output", str(output)]
    return main([*command, "--policy", "reencode", *GEOMETRY, *more])


def test_export_takes_the_shipped_gate_says_so_and_the_artifact_carries_it(
    package, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    assert export(package, tmp_path / "artifact") == 0
    assert "read by the shipped gate tiny.safetensors" in capsys.readouterr().err
    info = read_manifest(tmp_path / "artifact").gate
    assert info is not None and info.source == "tiny.safetensors"
    own, carried = package / "gates/tiny.safetensors", tmp_path / "artifact/gate.safetensors"
    assert read_metadata(carried) == read_metadata(own)
    tensors = load_file(carried)
    assert all(torch.equal(tensors[name], t) for name, t in load_file(own).items())


@pytest.mark.parametrize("more", [["--window-length", "9"], ["--gate", "untrained"]])
def test_a_gate_of_another_geometry_isnt_taken(package, tmp_path, monkeypatch, capsys, more):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    assert export(package, tmp_path / "artifact", *more) == 0
    info = read_manifest(tmp_path / "artifact").gate
    assert info is not None and info.source == "untrained"
    assert ("no trained gate is shipped" in capsys.readouterr().err) == ("--gate" not in more)


def test_a_gate_is_found_by_the_weights_and_the_geometry_it_was_trained_for():
    for path in GATES:
        card = read_metadata(path)
        geometry = Geometry.from_dict(json.loads(card["geometry"]))
        assert shipped_gate(card["weights_sha256"], geometry) == path
        assert shipped_gate("0" * 64, geometry) is None


@pytest.mark.parametrize("path", GATES, ids=lambda path: path.stem)
def test_a_shipped_gate_is_small_and_says_what_it_was_made_from(path):
    assert path.stat().st_size <= 1_500_000
    card = read_metadata(path)
    trained, held_out = (json.loads(card[k]) for k in ("trained_on", "held_out_documents"))
    assert trained and held_out and not set(trained) & set(held_out)
    about = path.with_suffix(".md").read_text(encoding="utf-8")
    assert "edgeinfinite train-gate" in about and card["backbone"] in about
    assert all(name in about for name in held_out)


@pytest.mark.slow
def test_the_demo_model_has_one_for_each_geometry():
    digest = parameters_digest(load_backbone(DEMO_MODEL).model, gates=False)
    for geometry in (Geometry(512, 64, 64), Geometry()):
        assert shipped_gate(digest, geometry) is not None
