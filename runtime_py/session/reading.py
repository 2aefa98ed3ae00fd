"""Reads a document into a session file, so that it can be asked about at any time.

The file is written every so often, with the tokens that are still to be read in it. A reading that
was killed therefore goes on where the file ends, and reads the same chunks as one that wasn't: the
finished files hold the same bytes in every array.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.artifact.session_file import read_session_header
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.session.notes import ReadDocument, notes_of
from edgeinfinite.runtime_py.session.session import Cancelled


@dataclass(frozen=True)
class SaveEvery:
    """When a reading is saved: after so many tokens or so many seconds, whichever is first."""

    tokens: int = 4096
    seconds: float = 30.0


def begin_reading(
    conversation: Conversation, text: str, *, name: str, title: str, sha256: str, raw: bool
) -> None:
    """Makes a new conversation ready for `continue_reading`; reads nothing yet.

    Args:
        conversation: without a turn.
        text: the document's.
        name, title, sha256: of the document, see `ReadDocument`.
        raw: read the text as it stands, without the chat template.

    Raises:
        EdgeInfiniteError: the artifact has no chat template and `raw` isn't given.
    """
    tokens = conversation.tokenizer.encode_text(text) if raw else conversation.opening(text)
    conversation.message_is_open = not raw
    conversation.document = ReadDocument(name, title, sha256, len(tokens), raw)
    conversation.session.add_unread(tokens)


def continue_reading(
    conversation: Conversation,
    path: Path,
    *,
    every: SaveEvery = SaveEvery(),
    cancelled: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Reads the tokens that a session still has to read, and saves it on the way and at the end.

    Args:
        conversation: from `begin_reading`, or resumed from `path`.
        path: the session file.
        every: when to save on the way.
        cancelled: called between chunks; True stops.
        progress: called with the number of tokens newly read.

    Raises:
        EdgeInfiniteError: the file can't be written; an older one is as it was.
        Cancelled: what was read so far is saved.
    """
    session = conversation.session
    asked = cancelled or (lambda: False)
    while session.unread:
        tokens, start = session.tokens_read, time.monotonic()

        def is_due(tokens: int = tokens, start: float = start) -> bool:
            read = session.tokens_read - tokens
            return read >= every.tokens or (read > 0 and time.monotonic() - start >= every.seconds)

        try:
            session.append([], cancelled=lambda: asked() or is_due(), progress=progress)
        except Cancelled:
            if asked():
                conversation.save(path)
                raise
        conversation.save(path)


def document_in(path: Path, document: bytes) -> ReadDocument:
    """What an existing session file says of its document, which must be this one.

    Args:
        path: the session file.
        document: the bytes of the document's file.

    Raises:
        EdgeInfiniteError: it is of another document or of none, or is damaged.
    """
    _, metadata = read_session_header(path)
    read = notes_of(path, metadata).document
    other = "give another --output, or remove the file"
    if read is None:
        raise EdgeInfiniteError(f"{path} is a session without a document; {other}")
    if read.sha256 != hashlib.sha256(document).hexdigest():
        raise EdgeInfiniteError(f"{path} holds another document, {read.name}; {other}")
    return read
