"""`optimum-cli export edgeinfinite`, as optimum itself finds and runs it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tiny_artifact import GEOMETRY, tiny_checkpoint
from tree import ROOT

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main as edgeinfinite

PROJECT = ROOT / "optimum_edgeinfinite"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("optimum") / "checkpoint")


def optimum_cli(patch: pytest.MonkeyPatch, *argv: str) -> int | str | None:
    """The exit code of optimum's own entry point."""
    patch.syspath_prepend(PROJECT)
    patch.setattr(sys, "argv", ["optimum-cli", "export", "edgeinfinite", *argv])
    from optimum.commands.optimum_cli import main

    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_it_exports_what_edgeinfinite_export_does(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tmp_path / "ours", tmp_path / "optimums"
    options = [["--model", str(checkpoint), "--output", str(to), *GEOMETRY] for to in folders]
    assert edgeinfinite(["export", *options[0]]) == 0
    assert optimum_cli(monkeypatch, *options[1]) == 0
    ours, optimums = (load_manifest(folder) for folder in folders)
    assert ours.geometry == optimums.geometry
    graphs = [{graph.file for graph in m.graphs.values()} for m in (ours, optimums)]
    assert graphs[0] == graphs[1]
    assert all(ours.files[name] == optimums.files[name] for name in graphs[0])


def test_what_is_wrong_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", str(tmp_path / "none"), "--output", str(tmp_path / "artifact")]
    assert optimum_cli(monkeypatch, *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("edgeinfinite: error: ") and "none" in last


def test_its_wheel_adds_one_file_to_optimums_namespace(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    source = tmp_path / "source"
    for file in PROJECT.rglob("*"):
        if file.suffix in (".py", ".md", ".toml"):
            copy = source / file.relative_to(PROJECT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True)
    (built,) = tmp_path.glob("*.whl")
    names = [name for name in zipfile.ZipFile(built).namelist() if "dist-info" not in name]
    assert names == ["optimum/commands/register/register_edgeinfinite.py"]
