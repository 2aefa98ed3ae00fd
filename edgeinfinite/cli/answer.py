"""`edgeinfinite generate` and `chat`: answer a prompt or hold a conversation on stdout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.mom import check_engine, open_conversation
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable, held_alone, read_text_file
from edgeinfinite.runtime_py.conversation import Conversation
from edgeinfinite.runtime_py.generation import Interruption, Terminated, interruptible
from edgeinfinite.runtime_py.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.saved_session import load_session, save_session
from edgeinfinite.runtime_py.statistics import write_rows


def generate(arguments: argparse.Namespace) -> int:
    """Reads one prompt and streams the answer to stdout."""
    prompt = _prompt(arguments)
    sampler = Sampler(SamplingOptions(**given(arguments, SamplingOptions)))
    check_writable(arguments.stats_json)
    conversation = _open(arguments)
    if arguments.raw or not conversation.tokenizer.has_chat_template:
        if not arguments.raw:
            note("the artifact has no chat template, so the text is continued")
        tokens = conversation.tokenizer.encode_text(prompt)
    else:
        tokens = conversation.turn(prompt)
    with interruptible() as interrupted:  # held until the figures of a partial answer are written
        _answer(conversation, tokens, sampler, arguments.max_new_tokens, interrupted)
        figures = conversation.statistics()
        assert figures is not None
        if arguments.stats:
            print(figures.table(), file=sys.stderr)
        if arguments.stats_json:
            write_rows(arguments.stats_json, "generate", [figures.to_row()])
    if interrupted.terminated:
        raise Terminated
    return 130 if conversation.session.unread else 0


def chat(arguments: argparse.Namespace) -> int:
    """A conversation: /reset forgets it, /stats shows the last answer's figures, /exit ends."""
    sampler = Sampler(SamplingOptions(**given(arguments, SamplingOptions)))
    path: Path | None = arguments.session
    check_writable(path, again=True)
    with nullcontext() if path is None else held_alone(path):
        conversation = _open(arguments)
        if path is not None and path.exists():
            conversation.session, _ = load_session(conversation.session.engine, path)
            print(f"resuming after {conversation.session.tokens_read:,} tokens", file=sys.stderr)
        is_saved = _converse(conversation, path, sampler, arguments.max_new_tokens)
        if path is not None and not is_saved:  # the disk may have room now
            save_session(conversation.session, path)
    return 0


def _converse(
    conversation: Conversation, path: Path | None, sampler: Sampler, max_new_tokens: int
) -> bool:
    """Answers line by line; returns whether the session's file has the last turn.

    Raises:
        Terminated: on SIGTERM, after the current turn is saved.
    """
    is_saved = True
    for line in _lines("> "):
        if line == "/exit":
            break
        if line == "/stats":
            figures = conversation.statistics()
            print(figures.table() if figures else "no answer yet", file=sys.stderr)
            continue
        with interruptible() as interrupted:  # held until the turn is saved
            if line == "/reset":
                conversation.reset()
            else:
                tokens = conversation.turn(line)
                _answer(conversation, tokens, sampler, max_new_tokens, interrupted)
            if path is not None:
                is_saved = _save(conversation, path)
        if interrupted.terminated:
            raise Terminated
    return is_saved


def _save(conversation: Conversation, path: Path) -> bool:
    """Saves the chat and returns whether that worked; a full disk doesn't end a chat."""
    try:
        save_session(conversation.session, path)
    except EdgeInfiniteError as error:
        note(f"{error}; the chat continues and is saved after the next answer")
        return False
    return True


def _open(arguments: argparse.Namespace) -> Conversation:
    check_engine(arguments)
    if sys.stderr.isatty():
        print(f"loading {arguments.artifact} ...", file=sys.stderr)
    if arguments.engine == "mom":
        return open_conversation(arguments)
    return Conversation.open(arguments.artifact, threads=arguments.threads)


def _answer(
    conversation: Conversation,
    tokens: list[int],
    sampler: Sampler,
    max_new_tokens: int,
    interrupted: Interruption,
) -> None:
    """Streams one answer to stdout; Ctrl-C ends the answer, a second Ctrl-C the program."""
    session = conversation.session
    with _reading(len(session.unread) + len(tokens)) as bar:
        pieces = conversation.answer(
            tokens,
            sampler=sampler,
            max_new_tokens=max_new_tokens,
            cancelled=interrupted,
            progress=bar.update,
        )
        for piece in pieces:
            bar.close()
            sys.stdout.write(piece)
            sys.stdout.flush()
    print(flush=True)  # before the figures, which go to stderr
    if session.unread:
        left = f"stopped with {len(session.unread):,} tokens of the message unread"
        print(f"{left}; a chat reads them with the next one, /reset forgets them", file=sys.stderr)


def _reading(tokens: int) -> Any:
    """A progress bar on stderr for long prompts; hidden if stderr isn't a terminal."""
    from tqdm import tqdm

    return tqdm(
        total=tokens,
        desc="reading",
        unit=" tokens",
        delay=0.5,
        leave=False,
        disable=None,  # hidden if stderr isn't a terminal
    )


def _lines(prompt: str) -> Iterator[str]:
    """Yields stdin's non-blank lines, stripped; shows the prompt only on a terminal."""
    terminal = sys.stdin.isatty()
    if terminal:
        with suppress(ImportError):  # Windows has none
            import readline  # noqa: F401  (gives `input` line editing)
    while True:
        try:
            line = input(prompt if terminal else "").strip()
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise EdgeInfiniteError("standard input isn't UTF-8 text; convert it first") from error
        if line:
            yield line


def _prompt(arguments: argparse.Namespace) -> str:
    path: Path | None = arguments.prompt_file
    text = arguments.prompt if path is None else read_text_file(path)
    if not text.strip():
        raise EdgeInfiniteError(f"prompt is empty; write text into {path or '--prompt'}")
    return text
