"""Chips by name."""

from __future__ import annotations

import builtins

import pytest

from edgeinfinite.artifact.socs import soc_named
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.runtime_py.engines.qnn_provider import provider_package

EXPORT = ["export", "--model", "nowhere", "--output", "nowhere", "--backend", "onnx"]


def test_a_chip_is_known_by_its_name() -> None:
    assert (soc_named("sm8650").model, soc_named("sm8650").arch) == (57, 75)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--target", "qnn-htp", "--soc", "sm8350"], "unknown SoC 'sm8350'; choose one of sm8550"),
        (["--target", "qnn-htp"], "--soc names it: give both"),
        (["--soc", "sm8650"], "--soc names it: give both"),
        (
            ["--backend", "executorch", "--target", "qnn-htp", "--soc", "sm8650"],
            "the back end executorch has no target 'qnn-htp'; choose one of cpu",
        ),
    ],
)
def test_an_export_refuses_in_one_line(
    options: list[str], wrong: str, capsys: pytest.CaptureFixture
) -> None:
    assert main([*EXPORT, *options]) == 2
    error = capsys.readouterr().err
    assert wrong in error and error.count("\n") == 1


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *more: object, **named: object) -> object:
        if name == "onnxruntime_qnn":
            raise ModuleNotFoundError(name=name)
        return imported(name, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EdgeInfiniteError, match=r"pip install .*\[qnn\]"):
        provider_package()


def test_options_for_a_program_are_checked_like_the_command_lines() -> None:
    from pathlib import Path

    with pytest.raises(EdgeInfiniteError, match="unknown SoC"):
        ExportOptions("model", Path("out"), target="qnn-htp", soc="sm1")
