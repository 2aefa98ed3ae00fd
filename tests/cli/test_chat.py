"""`edgeinfinite chat` with piped lines."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session import Session
from edgeinfinite.runtime_py.tokenizer import load_tokenizer

LONG = "It was a bright cold day in April, and the clocks were striking thirteen. " * 3


def _chat(artifact: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(["chat", str(artifact), "--max-new-tokens", "8", *options]) == 0


def test_a_chat_goes_on_in_one_state_and_reset_starts_anew(
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
