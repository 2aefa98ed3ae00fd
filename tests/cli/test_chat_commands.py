"""The commands of `edgeinfinite chat`, from a pipe."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from greedy import open_greedy
from tiny_documents import pdf

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.cli import main
from edgeinfinite.cli.chat import talk
from edgeinfinite.cli.chat.commands import command_of, message_of
from edgeinfinite.cli.screen import PlainScreen
from edgeinfinite.errors import EdgeInfiniteError

LONG = "It was a bright cold day in April, and the clocks were striking thirteen. " * 3
GREEDY = ("--temperature", "0", "--repetition-penalty", "1", "--max-new-tokens", "8")


class _Recorder(PlainScreen):
    """Keeps each answer too."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__()
        self._answers = answers
        self._pieces: list[str] = []

    def write(self, piece: str) -> None:
        self._pieces.append(piece)
        super().write(piece)

    def close(self) -> None:
        self._answers.append("".join(self._pieces))
        super().close()


class Chat:
    """Runs a chat over given lines."""

    def __init__(
        self,
        artifact: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.artifact, self._monkeypatch, self._capsys = artifact, monkeypatch, capsys

    def __call__(self, *lines: str, options: tuple[str, ...] = (), code: int = 0) -> list[str]:
        """The answers; a random model's may have any number of lines."""
        given = io.StringIO("".join(f"{line}\n" for line in lines))
        self._monkeypatch.setattr(sys, "stdin", given)
        answers: list[str] = []
        self._monkeypatch.setattr(talk, "screen", lambda: _Recorder(answers))
        self._capsys.readouterr()
        assert main(["chat", str(self.artifact), *GREEDY, *options]) == code
        printed = self._capsys.readouterr()
        self.errors = printed.err
        assert printed.out == "".join(f"{answer}\n" for answer in answers)
        return answers


@pytest.fixture
def chat(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Chat:
    return Chat(artifact, monkeypatch, capsys)


def test_undo_takes_the_last_turn_back(chat: Chat) -> None:
    first, second = chat("hello", "and then?")
    assert chat("hello", LONG, "/undo", "and then?")[-1] == second
    assert "took back: It was a bright" in chat.errors
    assert chat("hello", LONG, LONG, "/undo", "/undo", "/undo", "hello")[-1] == first
    assert chat("hello", "/reset", "hello", "/undo", "/undo", "and then?")[-1] == second


def test_undo_without_a_turn_says_how_far_it_reaches(chat: Chat) -> None:
    chat("/undo", code=2)
    assert "nothing to take back; a chat remembers its last 8 turns" in chat.errors
    chat("a", "b", "/undo", "/undo", options=("--undo", "1"), code=2)
    assert "a chat remembers its last 1 turns" in chat.errors
    chat("a", "/undo", options=("--undo", "0"), code=2)
    assert "can't be taken back with --undo 0" in chat.errors


def test_regenerate_answers_the_last_message_again(chat: Chat) -> None:
    answers = chat("hello", LONG, "/regenerate", "and then?")
    assert answers[1] == answers[2]
    assert answers[3] == chat("hello", LONG, "and then?")[-1]
    sampled = ("--temperature", "2", "--seed", "1", "--max-new-tokens", "30")
    first, again = chat("hello", "/regenerate", options=sampled)
    assert first != again


def test_edit_replaces_the_last_message(chat: Chat) -> None:
    edited = chat("hello", LONG, "/edit and then?")
    assert edited[-1] == chat("hello", "and then?")[-1]
    chat("hello", "/edit", code=2)
    assert "give the new message: /edit TEXT" in chat.errors


def test_a_turn_that_was_taken_back_is_not_in_the_session_file(chat: Chat, tmp_path: Path) -> None:
    file, other = tmp_path / "a.session", tmp_path / "b.session"
    chat("hello", LONG, "/undo", options=("--session", str(file)))
    chat("hello", options=("--session", str(other)))
    assert read_session_file(file).header == read_session_file(other).header


def test_an_attached_document_begins_the_next_message(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "april.txt").write_text(LONG)
    (tmp_path / "may day.pdf").write_bytes(pdf("May was warm."))
    attach = f"/attach {tmp_path}/april.txt"
    answers = chat(attach, "and then?")
    conversation = open_greedy(chat.artifact)
    message = f"{LONG.strip()}\n\nand then?"
    assert answers == ["".join(conversation.ask(message, max_new_tokens=8))]

    later = chat("hello", attach, f"/attach '{tmp_path}/may day.pdf'", "and then?")
    conversation.reset()
    list(conversation.ask("hello", max_new_tokens=8))
    message = f"{LONG.strip()}\n\nMay was warm.\n\nand then?"
    assert later[-1] == "".join(conversation.ask(message, max_new_tokens=8))
    assert chat("hello", attach, "/undo", "and then?")[-1] == chat("hello", "and then?")[-1]


def test_what_is_attached_is_in_the_session_file(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "april.txt").write_text(LONG)
    attach, file = f"/attach {tmp_path}/april.txt", tmp_path / "a.session"
    (expected,) = chat(attach, "and then?")
    assert chat(attach, options=("--session", str(file))) == []
    assert chat("and then?", options=("--from", str(file))) == [expected]
    assert chat("and then?", options=("--session", str(file))) == [expected]
    assert chat("/exit", options=("--from", str(file))) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/attach", "give a file: /attach FILE"),
        ("/attach /nowhere/at/all.pdf", "No such file"),
        ("/save", "give a file: /save FILE"),
        ("/save /nowhere/at/all.session", "there is no folder"),
        ("/dance", "there is no command /dance; /help lists them"),
        ("/HELP", "there is no command /HELP"),
        ("/etc/passwd is a file", "is sent by writing // first"),
        ("/regenerate", "there is nothing to take back"),
        ("/edit x", "there is nothing to take back"),
    ],
)
def test_a_command_that_can_not_be_done_is_one_line(chat: Chat, line: str, message: str) -> None:
    assert chat(line, "unread", code=2) == []
    assert message in chat.errors and chat.errors.count("\n") == 1


def test_regenerate_after_an_attached_document_has_no_message(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    chat("hello", f"/attach {tmp_path}/a.txt", "/regenerate", code=2)
    assert "the last turn is /attach a.txt, not a message; /undo takes it back" in chat.errors


def test_two_slashes_send_a_message_that_begins_with_one(chat: Chat) -> None:
    conversation = open_greedy(chat.artifact)
    expected = "".join(conversation.ask("/etc/passwd?", max_new_tokens=8))
    assert chat("//etc/passwd?") == [expected]


def test_help_lists_every_command_and_what_undo_costs(chat: Chat) -> None:
    assert chat("/help", "/exit") == []
    for name in ("/attach", "/undo", "/regenerate", "/edit", "/save", "/stats", "/reset", "/exit"):
        assert name in chat.errors
    assert "8 turns (--undo)" in chat.errors and " MB" in chat.errors


def test_save_replaces_sessions_and_nothing_else(chat: Chat, tmp_path: Path) -> None:
    file, thesis = tmp_path / "a.session", tmp_path / "thesis.txt"
    (_, answer) = chat("hello", "and then?")
    chat("hi", f"/save {file}", "/reset", "hello", f"/save {file}")
    assert chat("and then?", options=("--from", str(file))) == [answer]
    thesis.write_text("years of work")
    chat("hello", f"/save {thesis}", code=2)
    assert thesis.read_text() == "years of work"


def test_lines_are_commands_only_where_they_begin_with_one_slash() -> None:
    assert command_of("hello /help") is None
    assert command_of("//help") is None and message_of("//help") == "/help"
    assert message_of("a // b") == "a // b"
    assert (
        command_of('/attach "a b.pdf"') == command_of("/attach\ta b.pdf") == ("/attach", "a b.pdf")
    )
    with pytest.raises(EdgeInfiniteError):
        command_of("/helpme")


@pytest.mark.parametrize(
    ("dropped", "path"),
    [
        (r"/books/My\ File\ \(1\).txt", "/books/My File (1).txt"),
        ("'/books/My File.txt'", "/books/My File.txt"),
        ('"/books/My File.txt"', "/books/My File.txt"),
        (r"'/books/it'\''s.txt'", "/books/it's.txt"),
        ("file:///books/My%20File.txt", "/books/My File.txt"),
        ("file:///books/caf%E9.txt", os.fsdecode(b"/books/caf\xe9.txt")),
        ("/books/My File.txt", "/books/My File.txt"),
        ("it's mine.txt", "it's mine.txt"),
    ],
)
def test_a_dropped_file_is_found_however_the_terminal_writes_it(dropped: str, path: str) -> None:
    assert command_of(f"/attach {dropped}") == ("/attach", path)


def test_a_file_whose_name_has_a_backslash_is_itself(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a\\ b").write_text("x")
    assert command_of("/attach a\\ b") == ("/attach", "a\\ b")


def test_an_edited_message_keeps_its_quotes() -> None:
    assert command_of("/edit 'Yes'") == ("/edit", "'Yes'")
