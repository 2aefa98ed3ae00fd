"""`edgeinfinite chat` with piped lines."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

LONG = "It was a bright cold day in April, and the clocks were striking thirteen. " * 3


def _chat(artifact: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    greedy = ("--temperature", "0", "--repetition-penalty", "1", "--max-new-tokens", "8")
    assert main(["chat", str(artifact), *greedy, *options]) == 0


def test_a_chat_continues_in_one_state_and_reset_starts_over(
    artifact: Path,
    greedy_answer: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _chat(artifact, ["hello", "", LONG, "/reset", "hello", "/exit", "unread"], monkeypatch)
    tokenizer, session = load_tokenizer(artifact), Session(load_engine(artifact))
    first = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
    answer = greedy_answer(session, first, artifact, 8)
    # The turn alone is read, after the template's end of the answer.
    turn = tokenizer._encode(
        f"<|im_end|>\n<|im_start|>user\n{LONG.strip()}<|im_end|>\n<|im_start|>assistant\n",
        add_special_tokens=False,
    )
    second = greedy_answer(session, turn, artifact, 8)
    assert session.compressions > 0
    assert capsys.readouterr().out == f"{answer}\n{second}\n{answer}\n"


def test_a_chat_begins_behind_a_system_prompt_and_its_file_goes_on_with_it(
    artifact: Path,
    tmp_path: Path,
    greedy_answer: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "talk.session"
    begin = ["--session", str(file), "--system", "Be brief."]
    _chat(artifact, ["hello", "/reset", "hello"], monkeypatch, *begin)
    first = load_tokenizer(artifact).encode_message("hello", system="Be brief.")
    answer = greedy_answer(Session(load_engine(artifact)), first, artifact, 8)
    assert capsys.readouterr().out == f"{answer}\n{answer}\n"
    _chat(artifact, ["/reset", "hello"], monkeypatch, *begin)
    assert capsys.readouterr().out == f"{answer}\n"
    _chat(artifact, ["and then?"], monkeypatch, "--session", str(file))
    capsys.readouterr()
    assert main(["chat", str(artifact), "--session", str(file), "--system", "Be long."]) == 2
    assert "began with another system prompt" in capsys.readouterr().err


def test_a_chat_is_restored_from_its_session_file(
    artifact: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "talk.session"
    _chat(artifact, [LONG, "and then?"], monkeypatch)
    at_once = capsys.readouterr().out
    _chat(artifact, [LONG], monkeypatch, "--session", str(file))
    _chat(artifact, ["and then?"], monkeypatch, "--session", str(file))
    assert capsys.readouterr().out == at_once
    assert list(tmp_path.iterdir()) == [file]

    _chat(artifact, ["/reset"], monkeypatch, "--session", str(file))
    _chat(artifact, [LONG, "and then?"], monkeypatch, "--session", str(file))
    assert capsys.readouterr().out == at_once


def test_chat_shows_the_figures_of_the_last_answer(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _chat(artifact, ["/stats", "hello", "/stats"], monkeypatch)
    errors = capsys.readouterr().err
    assert errors.startswith("no answer yet\n")
    assert errors.count("first token after") == 1


def test_ctrl_c_while_a_chat_waits_exits_130(artifact: Path, start: Any) -> None:
    process = start("chat", str(artifact), "--max-new-tokens", "1")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    process.stdout.readline()  # the answer: now it waits
    for _ in range(10):  # a signal that meets the end of the answer only ends the answer
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            break
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"\n")


def _ask(process: subprocess.Popen[bytes], line: str) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    return process.stdout.readline()


def test_two_chats_on_one_file_do_not_lose_turns(
    artifact: Path, tmp_path: Path, start: Any
) -> None:
    file = tmp_path / "talk.session"
    command = ("chat", str(artifact), "--max-new-tokens", "1", "--session", str(file))
    first = start(*command)
    _ask(first, "hello")
    second = start(*command)
    _, errors = second.communicate(b"hello\n", timeout=60)
    assert second.returncode == 2
    assert b"talk.session is open in another process" in errors and errors.count(b"\n") == 1
    first.kill()  # and nobody has to clean up behind it
    first.communicate(timeout=60)
    third = start(*command)
    _, errors = third.communicate(b"again\n", timeout=60)
    assert third.returncode == 0 and b"resuming after" in errors
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_disk_loses_neither_the_chat_nor_the_turn(artifact: Path, tmp_path: Path) -> None:
    file = tmp_path / "talk.session"
    command = [sys.executable, "-m", "edgeinfinite.cli", "chat", str(artifact)]
    process = subprocess.Popen(
        [*command, "--max-new-tokens", "1", "--session", str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # No file may become longer than this, much as if the disk were full.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 1 << 30)),
    )
    assert process.stderr is not None
    _ask(process, "hello")
    note = process.stderr.readline()
    assert b"can't be written" in note and b"the chat continues" in note
    assert list(tmp_path.iterdir()) == [tmp_path / ".talk.session.lock"]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    _, errors = process.communicate(timeout=60)  # the end: there is room by now
    assert (process.returncode, errors) == (0, b"")
    load_session(load_engine(artifact), file)
    assert list(tmp_path.iterdir()) == [file]


def test_sigterm_ends_a_chat_once_its_turn_is_saved(
    artifact: Path, tmp_path: Path, start: Any
) -> None:
    file = tmp_path / "talk.session"
    endless = ("--max-new-tokens", "10000000", "--temperature", "3")
    process = start("chat", str(artifact), *endless, "--session", str(file))
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"hello\n")
    os.read(process.stdout.fileno(), 1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (143, b"")
    assert list(tmp_path.iterdir()) == [file]
    assert load_session(load_engine(artifact), file)[0].tokens_read > 5


def test_sigterm_while_a_chat_waits_ends_it(artifact: Path, tmp_path: Path, start: Any) -> None:
    file = tmp_path / "talk.session"
    command = ("chat", str(artifact), "--max-new-tokens", "1", "--session", str(file))
    process = start(*command)
    _ask(process, "hello")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (143, b"")
    assert list(tmp_path.iterdir()) == [file]
