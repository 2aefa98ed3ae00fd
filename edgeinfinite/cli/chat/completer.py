"""What the Tab key completes in a chat: commands, and the paths that some of them take.

Imports prompt_toolkit, which the extra `chat` brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    PathCompleter,
    WordCompleter,
)
from prompt_toolkit.document import Document


class ChatCompleter(Completer):
    """Completes a line of a chat.

    Args:
        commands: such as `/help`.
        with_files: those of them that are followed by a path.
    """

    def __init__(self, commands: Iterable[str], with_files: Iterable[str]) -> None:
        self._commands = WordCompleter(list(commands), sentence=True)
        self._paths = PathCompleter(expanduser=True)
        self._with_files = tuple(f"{name} " for name in with_files)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        for begin in self._with_files:
            if line.startswith(begin):
                path = line.removeprefix(begin).lstrip()
                yield from self._paths.get_completions(Document(path, len(path)), event)
                return
        yield from self._commands.get_completions(document, event)
