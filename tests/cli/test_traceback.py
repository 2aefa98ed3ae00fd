"""`--traceback` says where an error came from; without it an error is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeinfinite.cli import main


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_traceback_is_shown_wherever_the_option_stands(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["verify", str(tmp_path / "missing")]
    asked = ["--traceback", *command] if place == "before" else [*command, "--traceback"]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert main(asked) == 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert "EdgeInfiniteError" in shown[-2] and shown[-1] == line


def test_nested_commands_have_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "passkey", "--artifact", str(tmp_path / "missing")]
    assert main([*command, "--traceback"]) == 2
    assert "Traceback (most recent call last):" in capsys.readouterr().err
