"""Where the user's lines come from: a pipe, a plain terminal, or one with prompt_toolkit."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from edgeinfinite.cli.terminal import is_dumb
from edgeinfinite.errors import EdgeInfiniteError

PROMPT = "> "


class Lines(Protocol):
    """Asks for one line at a time."""

    is_terminal: bool
    """Whether somebody types them."""

    def ask(self, default: str = "") -> str:
        """The next line, stripped.

        Args:
            default: text to edit, on a terminal.

        Raises:
            EOFError: there is none.
            KeyboardInterrupt: Ctrl-C.
            EdgeInfiniteError: it isn't UTF-8.
        """
        ...


class PlainLines:
    """`input`, with the editing that the readline library gives it on a terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdin.isatty()
        self._mark = "\ufeff"  # PowerShell puts one before the first line of what it pipes
        self._readline: Any = None
        if self.is_terminal:
            with suppress(ImportError):  # Windows has none
                import readline

                self._readline = readline

    def ask(self, default: str = "") -> str:
        if self._readline is not None:
            self._readline.set_startup_hook(lambda: self._readline.insert_text(default))
        try:
            line = input(PROMPT if self.is_terminal else "")
        except UnicodeDecodeError as error:
            raise EdgeInfiniteError("standard input isn't UTF-8 text; convert it first") from error
        mark, self._mark = self._mark, ""
        return line.removeprefix(mark).strip()


class EditedLines:
    """prompt_toolkit: history, completion of commands, messages of several lines.

    Args:
        session: a `PromptSession`.
    """

    is_terminal = True

    def __init__(self, session: Any) -> None:
        self._session = session

    def ask(self, default: str = "") -> str:
        return str(self._session.prompt(PROMPT, default=default)).strip()


def lines(commands: Iterable[str], with_files: Iterable[str], history: Path | None) -> Lines:
    """The best way to ask on this terminal.

    Args:
        commands: to complete, such as `/help`.
        with_files: those of them whose paths are completed, too.
        history: a file that keeps the lines from one chat to the next; None keeps them while the
            chat lasts.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or is_dumb():
        return PlainLines()
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings

        from edgeinfinite.cli.chat.completer import ChatCompleter
    except ModuleNotFoundError:
        return PlainLines()
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return EditedLines(
        PromptSession(
            history=InMemoryHistory() if history is None else FileHistory(str(history)),
            completer=ChatCompleter(commands, with_files),
            complete_while_typing=False,
            key_bindings=keys,
        )
    )
