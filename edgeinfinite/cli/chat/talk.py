"""A conversation on the terminal: one line after another, each a message or a command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edgeinfinite.artifact.session_file import read_session_header
from edgeinfinite.cli.answer import answer, reading_bar, told
from edgeinfinite.cli.chat.commands import command_of, help_text, message_of
from edgeinfinite.cli.chat.lines import Lines
from edgeinfinite.cli.notes import note
from edgeinfinite.cli.screen import screen
from edgeinfinite.cli.terminal import dimmed
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.generation import Interruption, Terminated, interruptible
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.documents.isolated import read_isolated
from edgeinfinite.runtime_py.session.notes import ReadDocument
from edgeinfinite.runtime_py.session.session import Cancelled
from edgeinfinite.runtime_py.session.snapshots import Snapshot, Snapshots


class Talk:
    """A conversation, its file and its past.

    Args:
        conversation: what was read so far.
        sampler: for all answers.
        path: the session file; None without.
        arguments: have `max_new_tokens` and `undo`.
        asker: gives the lines.
    """

    def __init__(
        self,
        conversation: Conversation,
        sampler: Sampler,
        path: Path | None,
        arguments: argparse.Namespace,
        asker: Lines,
    ) -> None:
        self._conversation = conversation
        self._sampler = sampler
        self._path = path
        self._most_new = arguments.max_new_tokens
        self._is_exact = arguments.engine == "mom"
        self._undo_turns = arguments.undo
        self._asker = asker
        self._past = Snapshots(self._undo_turns)
        self._is_saved = True
        self._draft = ""

    def greet(self) -> None:
        """Says whom the user talks to, and how to get on."""
        model = self._conversation.model or self._conversation.artifact
        state = self._conversation.session.state_bytes / 1e6
        kept = f"in a state of {state:,.1f} MB for texts of any length"
        print(
            f"{model}, {'exact attention, its KV cache on disk' if self._is_exact else kept}\n"
            "/help lists the commands; Ctrl-C ends an answer, /exit the chat",
            file=sys.stderr,
        )

    def run(self) -> None:
        """Answers line by line until the lines end.

        Raises:
            EdgeInfiniteError: of a line that nobody typed; on a terminal it is only shown.
            KeyboardInterrupt: Ctrl-C, on a terminal twice.
            Terminated: on SIGTERM, after the current turn is saved.
        """
        while (line := self._next_line()) is not None and line.split()[0] != "/exit":
            try:
                self._take(line)
            except (EdgeInfiniteError, OSError) as error:
                if not self._asker.is_terminal:
                    raise
                print(f"error: {_one_line(error)}", file=sys.stderr)
        if self._path is not None and not self._is_saved:  # the disk may have room now
            self._conversation.save(self._path)

    def _next_line(self) -> str | None:
        """The next line that isn't blank; None at the end."""
        hinted = False
        while True:
            draft, self._draft = self._draft, ""
            try:
                line = self._asker.ask(draft)
            except EOFError:
                return None
            except Terminated:
                raise
            except KeyboardInterrupt:
                if hinted or not self._asker.is_terminal:
                    raise
                hinted = True
                print("\nCtrl-C once more, or /exit, ends the chat", file=sys.stderr)
                continue
            hinted = False
            if line:
                return line

    def _take(self, line: str) -> None:
        """Does what one line asks for."""
        command = command_of(line)
        if command is None:
            self._say(message_of(line))
            return
        name, rest = command
        if name == "/help":
            state_bytes = self._conversation.session.state_bytes
            kept = 0 if self._is_exact else self._undo_turns * state_bytes
            print(help_text(self._undo_turns, kept), file=sys.stderr)
        elif name == "/stats":
            figures = self._conversation.statistics()
            print(figures.table() if figures else "no answer yet", file=sys.stderr)
        elif name == "/save":
            self._save_to(rest)
        elif name == "/attach":
            self._attach(rest)
        elif name == "/reset":
            self._past.before(self._conversation, "/reset")
            self._conversation.reset()
            self._save()
        elif name == "/undo":
            note(f"took back: {_short(self._take_back().what)}")
            self._save()
        elif name == "/regenerate":
            self._say(self._take_back_message())
        elif name == "/edit":
            self._edit(rest)

    def _say(self, message: str) -> None:
        """One turn: the message is read and answered, and the state saved."""
        tokens = self._conversation.turn(message)
        self._past.before(self._conversation, message, message)
        with interruptible() as interrupted:  # held until the turn is saved
            try:
                shown = screen()
                answer(
                    self._conversation, tokens, self._sampler, self._most_new, interrupted, shown
                )
            except EdgeInfiniteError:
                if self._past.last is not None:
                    self._take_back()
                raise
            self._save()
        self._end_turn(interrupted)
        self._show_status()

    def _attach(self, name: str) -> None:
        """Reads a document at the beginning of the next message."""
        if not name:
            raise EdgeInfiniteError("give a file: /attach FILE")
        document = told(read_isolated(Path(name).expanduser()))
        conversation = self._conversation
        tokens = conversation.opening(document.text)
        self._past.before(conversation, f"/attach {document.name}")
        was_open, conversation.message_is_open = conversation.message_is_open, True
        if conversation.document is None and not conversation.session.tokens_read:
            conversation.document = ReadDocument(
                document.name, document.title, document.sha256, len(tokens), raw=False
            )
        with interruptible() as interrupted:  # held until the document is saved
            try:
                self._read(tokens, interrupted)
            except EdgeInfiniteError:
                conversation.message_is_open = was_open
                if self._past.last is not None:
                    self._take_back()
                raise
            self._save()
        self._end_turn(interrupted)
        if not conversation.session.unread:
            note(f"{document.name}: {len(tokens):,} tokens; ask about it")
        self._show_status()

    def _read(self, tokens: list[int], interrupted: Interruption) -> None:
        session = self._conversation.session
        with reading_bar(len(session.unread) + len(tokens)) as bar:
            try:
                session.append(tokens, cancelled=interrupted, progress=bar.update)
            except Cancelled:
                bar.close()
                note(
                    f"stopped with {len(session.unread):,} tokens unread; they are read with the "
                    "next message, /undo takes the document back"
                )

    def _edit(self, text: str) -> None:
        """Takes the last message back; the new one is given, or edited on the terminal."""
        if text:
            self._take_back_message()
            self._say(text)
            return
        if not self._asker.is_terminal:
            raise EdgeInfiniteError("give the new message: /edit TEXT")
        self._draft = self._take_back_message()
        self._save()

    def _take_back(self) -> Snapshot:
        if not self._undo_turns:
            raise EdgeInfiniteError(
                "turns can't be taken back with --undo 0; /reset forgets them all"
            )
        if self._past.last is None:
            raise EdgeInfiniteError(
                f"there is nothing to take back; a chat remembers its last {self._undo_turns} "
                "turns (--undo), not those of an earlier one"
            )
        turn = self._past.take_back()
        self._conversation = turn.before
        return turn

    def _take_back_message(self) -> str:
        last = self._past.last
        if last is not None and last.message is None:
            raise EdgeInfiniteError(
                f"the last turn is {_short(last.what)}, not a message; /undo takes it back"
            )
        message = self._take_back().message
        assert message is not None
        return message

    def _save_to(self, name: str) -> None:
        if not name:
            raise EdgeInfiniteError("give a file: /save FILE")
        if self._is_exact:
            raise EdgeInfiniteError("--engine mom has no state of fixed size that could be saved")
        path = Path(name).expanduser()
        check_writable(path, again=True)
        if path.exists():
            read_session_header(path)  # nothing but a session is replaced
        self._conversation.save(path)
        note(f"{path}: {self._conversation.session.tokens_read:,} tokens")

    def _save(self) -> None:
        """Saves the chat, if it has a file; a full disk doesn't end it."""
        if self._path is None:
            return
        try:
            self._conversation.save(self._path)
            self._is_saved = True
        except EdgeInfiniteError as error:
            note(f"{error}; the chat continues and is saved after the next answer")
            self._is_saved = False

    def _end_turn(self, interrupted: Interruption) -> None:
        if interrupted.terminated:
            raise Terminated

    def _show_status(self) -> None:
        """Tokens, state and speed, on a terminal."""
        if not (self._asker.is_terminal and sys.stderr.isatty()):
            return
        session, figures = self._conversation.session, self._conversation.statistics()
        parts = [
            f"{session.tokens_read:,} tokens read",
            f"state {session.state_bytes / 1e6:,.1f} MB",
        ]
        rate = figures.decode_tokens_per_s if figures else None
        if rate:
            parts.append(f"{rate:,.0f} tokens/s")
        print(dimmed(" · ".join(parts)), file=sys.stderr)


def _short(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= 60 else f"{line[:57]}..."


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
