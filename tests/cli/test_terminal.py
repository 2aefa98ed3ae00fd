"""What every command-line tool does: standard input, NO_COLOR, names of any bytes, permissions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from edgeinfinite.cli import main
from edgeinfinite.cli.chat.lines import PlainLines, lines
from edgeinfinite.cli.terminal import dimmed

GREEDY = ("--greedy", "--max-new-tokens", "4")


def run(*arguments: object, text: bytes = b"", **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "edgeinfinite.cli", *map(os.fsencode, map(str, arguments))],
        input=text,
        capture_output=True,
        env={**os.environ, **variables},
        timeout=120,
        check=False,
    )


def test_a_prompt_comes_from_standard_input_by_a_dash_and_by_a_pipe(artifact: Path) -> None:
    told = run("generate", artifact, "--prompt", "Say hi.", *GREEDY)
    for options in (["--prompt-file", "-"], []):
        piped = run("generate", artifact, *options, *GREEDY, text=b"Say hi.")
        assert (piped.returncode, piped.stdout) == (0, told.stdout), piped.stderr
    nothing = run("generate", artifact, *GREEDY)
    assert nothing.returncode == 2 and b"through a pipe" in nothing.stderr


def test_a_document_comes_from_standard_input(artifact: Path, tmp_path: Path) -> None:
    done = run("read", artifact, "-", "--output", tmp_path / "o.session", text=b"Hello there.")
    assert done.returncode == 0, done.stderr
    assert b"tokens of standard input" in done.stdout


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "utf-8:surrogateescape"])
def test_a_name_that_is_not_utf_8_is_shown_and_read(
    artifact: Path, tmp_path: Path, encoding: str
) -> None:
    name = tmp_path / os.fsdecode(b"caf\xe9.txt")
    name.write_text("Hello there.")
    output = tmp_path / os.fsdecode(b"caf\xe9.session")
    done = run("read", artifact, name, "--output", output, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    listed = run("sessions", tmp_path, PYTHONIOENCODING=encoding)
    assert listed.returncode == 0, listed.stderr
    assert b"caf\\udce9.session" in listed.stdout and b"caf\\udce9.txt" in listed.stdout
    missing = run("read", artifact, tmp_path / os.fsdecode(b"\xe9.txt"), "--output", output)
    assert missing.returncode == 2 and b"Traceback" not in missing.stderr


@pytest.mark.parametrize(
    ("variables", "plain"),
    [
        ({"TERM": "xterm"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, False),  # no-color.org: when not empty
        ({"TERM": "dumb"}, True),
    ],
)
def test_no_color_and_a_dumb_terminal_get_no_escape_codes(monkeypatch, variables, plain) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (dimmed("x") == "x") is plain


def test_a_dumb_terminal_gets_plain_lines(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert isinstance(lines(["/help"], ["/attach"], None), PlainLines)


def test_a_file_of_another_user_is_a_matter_of_permission() -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        _refused_to_another_user(folder / "theirs.session")


def _refused_to_another_user(file: Path) -> None:
    file.write_bytes(b"x")
    file.chmod(0o600)
    code = (
        f"import sys; from pathlib import Path; sys.path[:] = {sys.path!r}\n"
        "from edgeinfinite.artifact.session_file import read_session_header as read\n"
        "import os; os.setuid(65534)\n"
        f"try: read(Path({str(file)!r}))\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "can't be read: Permission denied" in done.stdout, done.stdout + done.stderr


def test_an_answer_begins_as_the_user_says(artifact: Path, capsys) -> None:
    begun = ["generate", str(artifact), "--prompt", "Hi", "--prefill", "The dog", *GREEDY]
    assert main(begun) == 0
    said = capsys.readouterr().out
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nThe dog"
    assert main(["generate", str(artifact), "--raw", "--prompt", text, *GREEDY]) == 0
    assert capsys.readouterr().out == said
    assert main([*begun, "--raw"]) == 2
    assert "--prefill needs a chat template" in capsys.readouterr().err
