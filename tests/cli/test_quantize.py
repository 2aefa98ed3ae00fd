"""quantize-report, and exports for a size, for a loss and with calibrated rounding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_artifact import tiny_checkpoint

from edgeinfinite.artifact.manifest import fingerprint, read_manifest
from edgeinfinite.cli import main
from edgeinfinite.export.loss import ARTIFACT, CHECKPOINT
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session

LENGTHS = (
    "--policy",
    "reencode",
    "--segment-length",
    "16",
    "--sink-length",
    "4",
    "--window-length",
    "8",
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


def exported(checkpoint: Path, output: Path, *options: str) -> Path:
    arguments = ["--model", str(checkpoint), "--output", str(output), *LENGTHS, *options]
    assert main(["export", "--quantize", "int4", "--gate", "none", *arguments]) == 0
    return output


def size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


@pytest.fixture(scope="module")
def report(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    rows = folder / "rows.jsonl"
    arguments = ["--model", str(checkpoint), "--output", str(rows), *LENGTHS]
    assert main(["quantize-report", *arguments, "--plot", str(folder / "plot.png")]) == 0
    assert (folder / "plot.png").stat().st_size > 5000
    return rows


def test_the_report_names_every_weight_and_format(report, checkpoint, capsys):
    first, *rows = map(json.loads, report.read_text().splitlines())
    assert first["backend"] == "onnx"
    assert {"model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight"} <= {
        row["weight"] for row in rows
    }
    assert all(row["loss"] >= 0 and row["bytes"] > 0 for row in rows)
    before = report.read_text()
    arguments = ["--model", str(checkpoint), "--output", str(report), *LENGTHS]
    assert main(["quantize-report", *arguments]) == 0
    assert report.read_text() == before  # nothing is measured twice
    assert "mlp.up_proj" in capsys.readouterr().out


def test_an_artifact_for_a_size_is_no_larger_and_verifies(checkpoint, report, tmp_path):
    limit = 0.137
    small = exported(
        checkpoint, tmp_path / "small", "--max-mb", str(limit), "--report", str(report)
    )
    assert size(small) <= limit
    formats = set(read_manifest(small).quantization.quantized.values())
    assert len(formats) > 1
    assert all(check.passed for check in verify_artifact(small, model=str(checkpoint)))


def test_a_state_of_one_mix_is_known_by_another_of_the_same_checkpoint(
    checkpoint, report, tmp_path
):
    """Caches hold what one rounding computed; only plain recipes are determined by their name."""
    sizes = ("0.137", "0.16")
    known = ["--report", str(report), "--max-read-mb", "1"]
    mixes = [exported(checkpoint, tmp_path / mb, "--max-mb", mb, *known) for mb in sizes]
    calibrated = exported(checkpoint, tmp_path / "calibrated", "--calibrate", "default")
    plain = read_manifest(exported(checkpoint, tmp_path / "plain"))
    assert plain.quantization.rounded_sha256 is None
    others = [read_manifest(folder) for folder in (*mixes, calibrated)]
    assert len({fingerprint(manifest) for manifest in (plain, *others)}) == 4
    session = Session(load_engine(mixes[0]))
    session.append(range(5))
    save_session(session, tmp_path / "read.session")
    for folder, other in zip(mixes, (False, True), strict=True):
        assert load_session(load_engine(folder), tmp_path / "read.session")[0].taken_over is other


def test_a_size_that_is_too_small_is_refused(checkpoint, report, tmp_path, capsys):
    arguments = ["--model", str(checkpoint), "--output", str(tmp_path / "no"), *LENGTHS]
    options = ["--quantize", "int4", "--gate", "none", "--max-mb", "0.001", "--report", str(report)]
    assert main(["export", *arguments, *options]) == 2
    assert "allow a larger size" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("backend", "form"),
    [("onnx", "int6 symmetric g32"), ("executorch", "int8 symmetric, one scale a row")],
)
def test_calibrated_rounding_is_exported_reported_and_verified(
    checkpoint, tmp_path, capsys, backend, form
):
    options = ["--calibrate", "default", "--backend", backend]
    folder = exported(checkpoint, tmp_path / "calibrated", *options)
    manifest = read_manifest(folder)
    assert manifest.details["calibrated"] is True
    assert {CHECKPOINT, ARTIFACT} <= set(manifest.parity)
    assert "to the checkpoint" in capsys.readouterr().out
    card = (folder / "README.md").read_text()
    assert "to the checkpoint" in card and form in card
    assert all(check.passed for check in verify_artifact(folder, model=str(checkpoint)))


def test_a_report_of_another_back_end_is_refused(checkpoint, report, tmp_path, capsys):
    """Its formats are none that this one could write."""
    arguments = ["--model", str(checkpoint), "--output", str(tmp_path / "no"), *LENGTHS]
    options = ["--quantize", "int4", "--gate", "none", "--max-mb", "1", "--report", str(report)]
    assert main(["export", *arguments, *options, "--backend", "executorch"]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "of another model, back end, text or version" in error
    assert not (tmp_path / "no").exists()


def test_a_text_too_short_to_calibrate_with_is_refused(checkpoint, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("Too short.")
    arguments = ["--model", str(checkpoint), "--output", str(tmp_path / "no"), *LENGTHS]
    calibrate = ["--calibrate", str(tmp_path / "short.txt")]
    assert main(["export", *arguments, "--quantize", "int4", *calibrate]) == 2
    assert "are needed" in capsys.readouterr().err


def test_under_carry_a_size_counts_the_tables_of_angles(checkpoint, tmp_path):
    """They are as large as this model's cache is long, not as the demo model's."""
    output, limit = tmp_path / "carry", 0.14
    lengths = ["--segment-length", "16", "--sink-length", "4", "--window-length", "8"]
    lengths += ["--cache-type", "float16"]
    command = ["export", "--quantize", "int4", "--model", str(checkpoint), "--output", str(output)]
    assert main([*command, "--policy", "carry", *lengths, "--max-mb", str(limit)]) == 0
    assert size(output) <= limit
