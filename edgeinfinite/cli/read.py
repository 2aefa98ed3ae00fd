"""`edgeinfinite read`: a document into a session file; and `sessions`: what files there are."""

from __future__ import annotations

import argparse
from pathlib import Path

from edgeinfinite.cli.answer import check_system_option, open_artifact, reading_bar, told
from edgeinfinite.cli.inputs import read_input
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError, printable
from edgeinfinite.files import check_writable, held_alone
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.generation import Terminated, interruptible
from edgeinfinite.runtime_py.documents.isolated import document_isolated
from edgeinfinite.runtime_py.session.listing import ListedSession, sessions_in
from edgeinfinite.runtime_py.session.reading import begin_reading, continue_reading, document_in
from edgeinfinite.runtime_py.session.session import Cancelled


def read(arguments: argparse.Namespace) -> int:
    """Reads a document into a session file once, to ask about it often; resumes if killed."""
    path: Path = arguments.output
    check_system_option(arguments)
    check_writable(path, again=True)
    name, data = read_input(arguments.file)
    with held_alone(path):
        conversation = _begun(arguments, name, data)
        session, document = conversation.session, conversation.document
        assert document is not None
        if not session.unread:
            print(f"{path}: {document.name} was read before, {document.tokens:,} tokens")
            return 0
        total = session.tokens_read + len(session.unread)
        with interruptible() as interrupted, reading_bar(total, read=session.tokens_read) as bar:
            try:
                continue_reading(conversation, path, cancelled=interrupted, progress=bar.update)
            except Cancelled:
                bar.close()
                note(
                    f"stopped after {session.tokens_read:,} of {total:,} tokens; the same command "
                    "goes on there"
                )
                if interrupted.terminated:
                    raise Terminated from None
                return 130
    state = f"a state of {session.state_bytes / 1e6:,.1f} MB"
    print(f"{path}: {document.tokens:,} tokens of {document.name} in {state}")
    return 0


def _begun(arguments: argparse.Namespace, name: str, data: bytes) -> Conversation:
    """The conversation that reads on in the file, or a new one with everything to read."""
    path: Path = arguments.output
    if path.exists():
        read = document_in(path, data)
        conversation = open_artifact(arguments, path)
        if read.raw != (arguments.raw or not conversation.tokenizer.has_chat_template):
            way = "with" if read.raw else "without"
            raise EdgeInfiniteError(
                f"{path} was read {way} --raw; do so again, or give another --output"
            )
        if conversation.system is not None and arguments.system is None:
            raise EdgeInfiniteError(
                f"{path} was read with --system {conversation.system!r}; do so again, or give "
                "another --output"
            )
        return conversation
    document = told(document_isolated(name, data))
    conversation = open_artifact(arguments)
    raw = arguments.raw
    if not raw and not conversation.tokenizer.has_chat_template:
        note("the artifact has no chat template, so the text is read as it stands")
        raw = True
    begin_reading(
        conversation,
        document.text,
        name=document.name,
        title=document.title,
        sha256=document.sha256,
        raw=raw,
    )
    return conversation


def sessions(arguments: argparse.Namespace) -> int:
    """Lists the session files of a folder: model, tokens read, size, date, document."""
    found = sessions_in(arguments.folder)
    if not found:
        note(f"there is no session file in {arguments.folder}")
    rows: list[tuple[str, ...]] = [("FILE", "MODEL", "TOKENS", "MB", "SAVED", "DOCUMENT")]
    rows += [_row(one) for one in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if found else []:
        name, model, *middle, document = row
        cells = [name.ljust(widths[0]), model.ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(middle, widths[2:5], strict=True)]
        print("  ".join([*cells, document]).rstrip())
    return 0


def _row(session: ListedSession) -> tuple[str, ...]:
    tokens = f"{session.tokens_read:,}"
    if session.tokens_left:
        tokens += f" of {session.tokens_read + session.tokens_left:,}"
    if session.error is not None:
        tokens = "-"
    document = session.title or session.document
    saved = session.saved.strftime("%Y-%m-%d %H:%M")
    size = f"{session.bytes / 1e6:,.1f}"
    return (
        printable(session.path.name),
        session.model,
        tokens,
        size,
        saved,
        session.error or document,
    )
