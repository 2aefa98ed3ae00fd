"""What a shell and a chat complete."""

import subprocess

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from edgeinfinite.cli.chat.commands import NAMES, WITH_FILES
from edgeinfinite.cli.chat.completer import ChatCompleter
from edgeinfinite.cli.main import main

COMPLETED = """
source "$1"
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMP_LINE="${*:2}"
_shtab_edgeinfinite "" "${@: -1}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(script, *words):
    found = subprocess.run(
        ["bash", "-c", COMPLETED, "bash", script, *words], capture_output=True, text=True
    )
    return found.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["edgeinfinite", "gener"], ["generate"]),
        (["edgeinfinite", "generate", "--max-n"], ["--max-new-tokens"]),
        (["edgeinfinite", "export", "--backend", "exec"], ["executorch"]),
        (["edgeinfinite", "completion", "z"], ["zsh"]),
    ],
    ids=lambda words: words[-1],
)
def test_bash_completes_commands_options_and_values(words, wanted, tmp_path, capsys):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    assert completed(script, *words) == wanted


def test_paths_are_completed_where_a_file_is_asked_for(tmp_path, capsys, monkeypatch):
    main(["completion", "bash"])
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "my-artifact").mkdir()
    monkeypatch.chdir(tmp_path)
    assert completed(script, "edgeinfinite", "verify", "my-a") == ["my-artifact"]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_the_other_shells_get_a_script_too(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "generate" in capsys.readouterr().out


def test_another_shell_is_refused_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "fish"])
    assert "bash, zsh, tcsh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("/att", ["/attach"]),
        ("/attach no", ["tes.txt"]),
        ("/save no", ["tes.txt"]),
        ("/attach ", ["notes.txt"]),
        ("no", []),
    ],
)
def test_a_chat_completes_commands_and_the_paths_behind_them(line, wanted, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    found = ChatCompleter(NAMES, WITH_FILES).get_completions(
        Document(line, len(line)), CompleteEvent(completion_requested=True)
    )
    assert [each.text for each in found] == wanted
