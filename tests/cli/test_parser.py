"""Misspelt commands and options lead to what was meant, in one line, with exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.answer.sampling_defaults import DEFAULTS

MISSPELT = [
    ("generat x", "there is no command 'generat'; did you mean generate?"),
    ("frobnicate", "there is no command 'frobnicate'; choose among export, verify,"),
    ("evaluate longbenc", "there is no command 'longbenc'; did you mean longbench?"),
    ("generate x --promt hi", "there is no option --promt; did you mean --prompt"),
    ("generate x --prompt hi --max-tokens 5", "did you mean --max-new-tokens?"),
    ("generate x --prompt hi --zzz=5", "there is no option --zzz; see `edgeinfinite generate"),
    ("evaluate longbench --artefact x", "did you mean --artifact"),
    ("export --model x --output y --quantize int5", "choose among none, int8, int4"),
]


@pytest.mark.parametrize(("command", "said"), MISSPELT)
def test_a_misspelt_word_is_told_what_was_probably_meant(command, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(command.split())
    printed = capsys.readouterr()
    assert stopped.value.code == 2 and printed.out == ""
    assert printed.err.startswith("edgeinfinite: error: ") and printed.err.count("\n") == 1
    assert said in printed.err


def test_what_follows_two_dashes_and_the_beginning_of_an_option_are_no_mistakes(tmp_path, capsys):
    assert main(["generate", str(tmp_path), "--prompt", "hi", "--max-new", "5"]) == 2
    assert "is not an artifact" in capsys.readouterr().err
    assert main(["sessions", "--", "--no-such-folder"]) == 2
    assert "no option" not in capsys.readouterr().err


def test_a_checkpoint_given_for_an_artifact_is_never_told_to_be_written_over(tmp_path, capsys):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    for path in (file, folder):
        assert main(["generate", str(path), "--prompt", "hi"]) == 2
        said = capsys.readouterr().err
        assert f"export --model {path} --output NEW_FOLDER" in said
        assert f"--output {path}" not in said
    for path in (tmp_path, Path(__file__)):
        assert main(["generate", str(path), "--prompt", "hi"]) == 2
        assert f"--output {path}" not in capsys.readouterr().err


def test_the_package_runs_as_a_module():
    run = subprocess.run(
        [sys.executable, "-m", "edgeinfinite", "--version"], capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stdout.startswith("edgeinfinite ")


@pytest.mark.parametrize("command", ["generate", "chat"])
def test_help_names_the_sampling_that_an_answer_takes(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for name, value in DEFAULTS.items():
        option = said.rpartition(f"--{name.replace('_', '-')} ")[2].partition(" --")[0]
        expected = f"(default: the checkpoint's, else {value})"
        if name == "repetition_detection":  # no checkpoint says it
            expected = "(default: on, off with"
        assert expected in option
