"""The commands of a chat: names, usage, and which one a line gives."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from edgeinfinite.errors import EdgeInfiniteError

COMMANDS = {
    "/help": "this list",
    "/attach FILE": "read a document now: text, .md, .html, .epub, .pdf, .docx",
    "/undo": "take the last turn back, its answer too",
    "/regenerate": "answer the last message again",
    "/edit [TEXT]": "take the last message back and write it anew",
    "/save FILE": "write what was read to a session file",
    "/stats": "figures of the last answer",
    "/reset": "forget everything",
    "/exit": "end the chat",
}
WITH_FILES = ("/attach", "/save")
NAMES = tuple(usage.split()[0] for usage in COMMANDS)


def command_of(line: str) -> tuple[str, str] | None:
    """The command of a line and what follows it; None for a message.

    Raises:
        EdgeInfiniteError: there is no such command.
    """
    if not line.startswith("/") or line.startswith("//"):
        return None
    name = line.split(maxsplit=1)[0]
    rest = line.removeprefix(name)
    if name not in NAMES:
        raise EdgeInfiniteError(
            f"there is no command {name[:40]}; /help lists them, and a message that begins with / "
            "is sent by writing // first"
        )
    rest = rest.strip()
    return name, path_of(rest) if name in WITH_FILES else rest


def message_of(line: str) -> str:
    """The message of a line that is no command."""
    return line.removeprefix("/") if line.startswith("//") else line


def help_text(undo: int, kept_bytes: int) -> str:
    """What `/help` shows.

    Args:
        undo: turns that can be taken back.
        kept_bytes: of the states that this takes at most; 0 if it takes none.
    """
    rows = [f"  {usage:<14}{about}" for usage, about in COMMANDS.items()]
    memory = f", whose states take up to {kept_bytes / 1e6:,.0f} MB" if kept_bytes else ""
    rows += [
        "  //TEXT        a message that begins with /",
        "Ctrl-C ends an answer, Alt-Enter begins a new line. Taking back reaches "
        f"{undo} turns (--undo){memory}.",
    ]
    return "\n".join(rows)


def path_of(text: str) -> str:
    r"""A path as terminals write a dropped file's: quoted, with `\ `, or as a URL."""
    if text.startswith("file://"):
        # Bytes, because a name need not be UTF-8.
        return os.fsdecode(unquote_to_bytes(urlsplit(text).path)) or text
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]:
        return text[1:-1]
    if os.name == "nt" or not set(text) & set("\\'\"") or Path(text).exists():
        return text
    try:
        parts = shlex.split(text)
    except ValueError:  # a quote without its other
        return text
    return parts[0] if len(parts) == 1 else text
