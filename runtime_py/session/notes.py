"""What a session file says for people and for the next turn, beside the state itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from edgeinfinite.artifact.session_file import broken

KEY = "edgeinfinite.notes"
"""The notes' name in a session file's metadata; files of other programs have none."""


@dataclass(frozen=True)
class ReadDocument:
    """The document that a session began with.

    Args:
        name: of the file, without its folder.
        title: as the document gives it; "" if it doesn't.
        sha256: over the file's bytes.
        tokens: how many it has, with what the chat template writes before it.
        raw: it was read without the chat template.
    """

    name: str
    title: str
    sha256: str
    tokens: int
    raw: bool


@dataclass(frozen=True)
class SessionNotes:
    """The notes.

    Args:
        model: name of the checkpoint.
        message_is_open: what was read last is the beginning of a user's message, so what the user
            says next goes on in that message (`open_message`).
        document: see there.
        system: the system prompt that the user gave; None for the template's own or none.
    """

    model: str = ""
    message_is_open: bool = False
    document: ReadDocument | None = None
    system: str | None = None

    def to_metadata(self) -> dict[str, str]:
        """For `save_session`."""
        return {KEY: msgspec.json.encode(self).decode()}


def notes_of(path: Path, metadata: dict[str, str]) -> SessionNotes:
    """The notes in a session file's metadata; empty ones if there are none.

    Raises:
        EdgeInfiniteError: they aren't what this module writes.
    """
    try:
        return msgspec.json.decode(metadata.get(KEY, "{}"), type=SessionNotes)
    except msgspec.MsgspecError as error:
        raise broken(path, error) from error
