"""`edgeinfinite generate`: answers one prompt; and what `chat` and `read` share with it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from edgeinfinite.cli.answer_form import answer_form
from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.inputs import STANDARD_INPUT, piped_input, read_input
from edgeinfinite.cli.mom import check_engine, open_conversation
from edgeinfinite.cli.notes import note
from edgeinfinite.cli.screen import PlainScreen, Screen
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.generation import Interruption, Terminated, interruptible
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.documents.document import Document
from edgeinfinite.runtime_py.documents.isolated import document_isolated


def generate(arguments: argparse.Namespace) -> int:
    """Reads one prompt and streams the answer to stdout."""
    prompt = _prompt(arguments)
    check_system_option(arguments)
    sampling_of(arguments, {})  # refuses impossible options before the artifact is loaded
    check_writable(arguments.stats_json)
    conversation = opened(arguments, arguments.from_)
    sampler = Sampler(sampling_of(arguments, conversation_sampling(arguments.artifact)))
    tokens, begins = _tokens(conversation, prompt, arguments)
    form = answer_form(arguments, conversation) | {"begins": begins}
    screen, limit = PlainScreen(), arguments.max_new_tokens
    with interruptible() as interrupted:  # held until the figures of a partial answer are written
        answer(conversation, tokens, sampler, limit, interrupted, screen, **form)
        figures = conversation.statistics()
        assert figures is not None
        if arguments.stats:
            print(figures.table(), file=sys.stderr)
        if arguments.stats_json:
            write_rows(arguments.stats_json, "generate", [figures.to_row()])
    if interrupted.terminated:
        raise Terminated
    return 130 if conversation.session.unread else 0


def check_system_option(arguments: argparse.Namespace) -> None:
    """Refuses a system prompt where no template would tell it.

    Raises:
        EdgeInfiniteError: it stands beside --raw.
    """
    if arguments.system is not None and arguments.raw:
        raise EdgeInfiniteError(
            "--system is told by the chat template, which --raw leaves out; leave one of them out"
        )


def sampling_of(arguments: argparse.Namespace, defaults: dict[str, Any]) -> SamplingOptions:
    """What the options say, and `defaults` for the rest, unless the answer is to be greedy.

    Raises:
        EdgeInfiniteError: an option is out of range, or contradicts --greedy.
    """
    asked = given(arguments, SamplingOptions)
    if arguments.greedy and asked.get("temperature"):
        raise EdgeInfiniteError("--greedy takes the likeliest token; leave --temperature out")
    return SamplingOptions(**({} if arguments.greedy else defaults) | asked)


def _tokens(
    conversation: Conversation, prompt: str, arguments: argparse.Namespace
) -> tuple[list[int], bool]:
    """The prompt's tokens, and whether the answer is a text of its own."""
    tokenizer, read = conversation.tokenizer, conversation.document
    prefill: str | None = arguments.prefill
    if not arguments.raw and tokenizer.has_chat_template and not (read and read.raw):
        if prefill is None:
            return conversation.turn(prompt), True
        if arguments.from_ is not None:
            raise EdgeInfiniteError("--prefill begins a new conversation; leave --from out")
        system = conversation.system
        said = [] if system is None else [{"role": "system", "content": system}]
        said += [{"role": "user", "content": prompt}, {"role": "assistant", "content": prefill}]
        return tokenizer.encode_chat(said, continues=True), False
    if prefill is not None:
        raise EdgeInfiniteError(
            "--prefill needs a chat template; without one, end the prompt with that text"
        )
    if not arguments.raw:
        why = "artifact has no chat template"
        if tokenizer.has_chat_template:
            why = "session was read with --raw"
        note(f"the {why}, so the text is continued")
    encode = tokenizer.encode_text if arguments.from_ is None else tokenizer.encode_more
    return encode(prompt), False


def opened(arguments: argparse.Namespace, session: Path | None = None) -> Conversation:
    """`open_artifact`, or the checkpoint of `--engine mom`."""
    check_engine(arguments)
    if arguments.engine == "mom":
        _show_loading(arguments)
        conversation = open_conversation(arguments)
        if arguments.system is not None:
            conversation.set_system(arguments.system)
        return conversation
    return open_artifact(arguments, session)


def open_artifact(arguments: argparse.Namespace, session: Path | None = None) -> Conversation:
    """Opens the artifact, and a session file to go on from, which isn't changed."""
    _show_loading(arguments)
    conversation = Conversation.open(
        arguments.artifact,
        session=session,
        threads=arguments.threads,
        system=arguments.system,
    )
    if session is not None:
        note_taken_over(conversation, session)
    if session is not None and sys.stderr.isatty():
        about = conversation.document.name if conversation.document else session.name
        print(f"{about}: {conversation.session.tokens_read:,} tokens were read", file=sys.stderr)
    return conversation


def note_taken_over(conversation: Conversation, path: Path) -> None:
    """Says that a session was begun by another artifact of the model, whose rounding differs."""
    if conversation.session.taken_over:
        note(
            f"{path} was read by another artifact of this model; this one goes on from there with "
            "its own rounding"
        )


def _show_loading(arguments: argparse.Namespace) -> None:
    if sys.stderr.isatty():
        print(f"loading {arguments.artifact} ...", file=sys.stderr)


def answer(
    conversation: Conversation,
    tokens: list[int],
    sampler: Sampler,
    max_new_tokens: int,
    interrupted: Interruption,
    screen: Screen,
    **form: Any,
) -> None:
    """Streams one answer to stdout; Ctrl-C ends the answer, a second Ctrl-C the program."""
    session = conversation.session
    with reading_bar(len(session.unread) + len(tokens)) as bar:
        pieces = conversation.answer(
            tokens,
            sampler=sampler,
            max_new_tokens=max_new_tokens,
            cancelled=interrupted,
            progress=bar.update,
            **form,
        )
        try:
            for piece in pieces:
                bar.close()
                screen.write(piece)
        finally:
            bar.close()
            screen.close()  # before the figures, which go to stderr
    figures = conversation.statistics()
    if figures is not None and figures.finish == "repetition":
        note("the answer repeated itself and was ended; --repetition-detection off lets it go on")
    if session.unread:
        left = f"stopped with {len(session.unread):,} tokens of the message unread"
        print(f"{left}; a chat reads them with the next one, /undo forgets them", file=sys.stderr)


def reading_bar(tokens: int, *, read: int = 0) -> Any:
    """A progress bar on stderr for long texts; hidden if stderr isn't a terminal.

    Args:
        tokens: how many there are.
        read: how many of them were read before.
    """
    from tqdm import tqdm

    return tqdm(
        total=tokens,
        initial=read,
        desc="reading",
        unit=" tokens",
        delay=0.5,
        leave=False,
        disable=None,  # hidden if stderr isn't a terminal
    )


def _prompt(arguments: argparse.Namespace) -> str:
    path: Path | None = arguments.prompt_file
    text: str | None = arguments.prompt
    if path is not None:
        return told(document_isolated(*read_input(path))).text
    if text is None:
        data = piped_input()
        if not data:
            raise EdgeInfiniteError(
                "one of the arguments --prompt --prompt-file is required, or a text through a pipe"
            )
        return told(document_isolated(STANDARD_INPUT, data)).text
    if not text.strip():
        raise EdgeInfiniteError("prompt is empty; write text into --prompt")
    return text


def told(document: Document) -> Document:
    """A document, whose notes are printed."""
    for sentence in document.notes:
        note(sentence)
    return document
