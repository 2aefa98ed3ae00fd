"""What every command-line tool does: standard input, NO_COLOR, names of any bytes, permissions."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from edgeinfinite.cli import main
from edgeinfinite.cli.chat.lines import PlainLines, lines
from edgeinfinite.cli.terminal import dimmed
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.contents import contents_of

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


def shell(script: str, *arguments: object) -> subprocess.CompletedProcess:
    """A script whose `$E` is the command line, with the arguments as `$1`, `$2`."""
    environment = {**os.environ, "E": f"{sys.executable} -m edgeinfinite.cli"}
    environment.pop("PYTHONUNBUFFERED", None)  # as for users
    command = ["sh", "-c", script, "sh", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, env=environment, timeout=120, check=False, text=True
    )


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell's redirections")
def test_closed_streams_are_as_dev_null(artifact: Path, tmp_path: Path) -> None:
    ask = '$E generate "$1" --greedy --max-new-tokens 4 --prompt Hi'
    told = shell(ask, artifact)
    assert shell(f"{ask} 2>&-", artifact).stdout == told.stdout != ""
    assert shell(f"{ask} >&-", artifact).returncode == 0
    chat = shell('$E chat "$1" <&-', artifact)
    assert (chat.returncode, chat.stderr) == (0, "")
    # No session file gets the number of a closed stream, where libraries write their warnings.
    kept = "echo Hello there. | $E read $1 - --output $2/a.session >&- 2>&-; $E sessions $2"
    assert "standard input" in shell(kept, artifact, tmp_path).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
@pytest.mark.parametrize("command", ["--help", "completion bash", "--version"])
def test_output_that_cannot_be_written_is_an_error_of_one_line(command: str) -> None:
    full = shell(f"$E {command} >/dev/full")
    assert full.returncode == 2 and full.stderr.count("\n") == 1, full.stderr
    assert "No space left on device" in full.stderr
    # A reader that is gone wants no more lines, of the error neither.
    assert shell(f"$E {command} | true").stderr == ""


def test_a_file_without_an_end_is_refused(monkeypatch, artifact: Path, tmp_path: Path) -> None:
    monkeypatch.setattr("edgeinfinite.runtime_py.documents.contents.MOST_BYTES", 3 << 20)
    with pytest.raises(EdgeInfiniteError, match=r"zero has more than 3 MB"):
        contents_of(Path("/dev/zero"))
    large = tmp_path / "large.txt"
    large.write_bytes(b"")
    os.truncate(large, (3 << 20) + 1)
    with pytest.raises(EdgeInfiniteError, match=r"large.txt has more than 3 MB"):
        contents_of(large)


def test_a_mark_that_powershell_pipes_is_no_part_of_the_first_line(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeff/help\r\n\ufeffsecond\n"))
    asker = PlainLines()
    assert [asker.ask(), asker.ask()] == ["/help", "\ufeffsecond"]
