"""A conversation with an artifact: text in, text out, one session behind it.

conversation = Conversation.open("my-artifact")
conversation.attach(book)
conversation.save("book.session")  # `Conversation.open(..., session=...)` goes on there
for piece in conversation.fork().ask(question):
print(piece, end="")
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.answer_figures import GenerationStatistics
from edgeinfinite.runtime_py.answer.answer_text import AnswerText
from edgeinfinite.runtime_py.answer.generation import MAX_NEW_TOKENS, Generation, Grammar
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.notes import ReadDocument, SessionNotes, notes_of
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.open_message import beginning_of_message, rest_of_message
from edgeinfinite.runtime_py.text.system_prompt import check_system
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer


class Conversation:
    """Turns of a user and of the model, in a state of fixed size.

    Args:
        session: holds the text read so far; may be restored from a file.
        tokenizer: the artifact's tokenizer.
        artifact: the artifact's folder, named in the statistics.

    Attributes:
        model: name of the checkpoint; "" if it isn't known.
        message_is_open: documents were read for the user's next message, see `attach`.
        sampling: of answers that are given no sampler. `open` takes what `generate` takes
            (`sampling_defaults`); `SamplingOptions()` is greedy.
        system: the system prompt, read with the first message; None for the template's own or
            none. `set_system` sets it.
        document: the one that `edgeinfinite read` read into the session's file; None without.
    """

    def __init__(self, session: Session, tokenizer: TextTokenizer, artifact: Path | str) -> None:
        self.session = session
        self.tokenizer = tokenizer
        self.artifact = str(artifact)
        self.model = ""
        self.message_is_open = False
        self.document: ReadDocument | None = None
        self.sampling = SamplingOptions()
        self.system: str | None = None
        self._generation: Generation | None = None
        self._text: AnswerText | None = None

    @classmethod
    def open(
        cls,
        artifact: Path | str,
        *,
        session: Path | str | None = None,
        threads: int | None = None,
        system: str | None = None,
    ) -> Conversation:
        """Opens an artifact.

        Args:
            artifact: the folder that `edgeinfinite export` wrote.
            session: a session file to go on from, which isn't changed; None begins anew.
            threads: the engine's CPU threads; None lets the engine choose.
            system: see `set_system`; None takes the template's own system prompt, or none.

        Raises:
            EdgeInfiniteError: the artifact is damaged, its engine isn't installed, the session is
                another artifact's, or `set_system` refuses.
        """
        manifest = load_manifest(Path(artifact))
        # First, while there is room for what its JSON takes.
        tokenizer = load_tokenizer(Path(artifact), vocabulary=manifest.backbone.vocabulary)
        if system is not None:
            check_system(tokenizer.chat_template, system)  # before the engine, which takes seconds
        engine = load_engine(artifact, manifest=manifest, threads=threads)
        conversation = cls(Session(engine), tokenizer, artifact)
        conversation.model = manifest.backbone.name
        conversation.sampling = SamplingOptions(**conversation_sampling(Path(artifact)))
        if session is not None:
            conversation.resume(session)
        if system is not None:
            conversation.set_system(system)
        return conversation

    def set_system(self, text: str) -> None:
        """Sets the system prompt, which the first message is read behind.

        Args:
            text: in place of the template's own; "" is an empty one.

        Raises:
            EdgeInfiniteError: the artifact has no chat template, or one without a system role; or
                the conversation has begun with another system prompt, or without the template.
        """
        check_system(self.tokenizer.chat_template, text)
        if self.document is not None and self.document.raw:
            raise EdgeInfiniteError(
                "the text was read with --raw, without the chat template that would tell a system "
                "prompt; leave it out"
            )
        if self._has_begun and text != self.system:
            had = "the template's own" if self.system is None else "another"
            raise EdgeInfiniteError(
                f"the conversation began with {had} system prompt, and what was read can't be "
                "changed; leave this one out, or begin a new conversation"
            )
        self.system = text

    def resume(self, path: Path | str) -> None:
        """Goes on where `save` was called; the file isn't changed.

        Raises:
            EdgeInfiniteError: see `load_session`.
        """
        session, metadata = load_session(self.session.engine, Path(path))
        notes = notes_of(Path(path), metadata)
        self.session = session
        self.message_is_open, self.document = notes.message_is_open, notes.document
        self.system = notes.system

    def save(self, path: Path | str) -> None:
        """Writes what was read to a session file.

        Raises:
            EdgeInfiniteError: it can't be written; an older file is as it was.
        """
        notes = SessionNotes(self.model, self.message_is_open, self.document, self.system)
        save_session(self.session, Path(path), extra=notes.to_metadata())

    def fork(self) -> Conversation:
        """A conversation that goes on from here by itself; see `Session.fork`."""
        fork = copy.copy(self)
        fork.session = self.session.fork()
        return fork

    def remember(self) -> Callable[[], Conversation]:
        """Remembers the conversation as it is; calling the result, once, gives it back.

        A state of fixed size is forked for it. An exact session is cut back: what was read since is
        forgotten, also by this conversation.
        """
        if self.session.can_fork:
            fork = self.fork()
            return lambda: fork
        before, go_back = copy.copy(self), self.session.mark()

        def restored() -> Conversation:
            go_back()
            return before

        return restored

    @cached_property
    def guidance(self) -> Guidance:
        """Makes grammars: `conversation.ask(text, grammar=conversation.guidance.regex("yes|no"))`.

        Raises:
            EdgeInfiniteError: llguidance isn't installed, or can't use the tokenizer.
        """
        return Guidance(self.tokenizer, self.session.engine.vocabulary)

    def reset(self) -> None:
        """Forgets everything that was read; the system prompt stays."""
        self.session = type(self.session)(self.session.engine)
        self.message_is_open, self.document = False, None

    def turn(self, message: str) -> list[int]:
        """Token ids of the user's next message, in the artifact's chat template.

        Raises:
            EdgeInfiniteError: the artifact has no chat template.
        """
        if self.message_is_open:
            return rest_of_message(self.tokenizer, message)
        if self._has_begun:
            return self.tokenizer.encode_turn(message)
        return self.tokenizer.encode_message(message, system=self.system)

    def opening(self, document: str) -> list[int]:
        """Token ids of a document at the beginning of the user's next message; see `attach`.

        Raises:
            EdgeInfiniteError: the artifact has no chat template, or one that can't be cut there.
        """
        return beginning_of_message(
            self.tokenizer,
            document,
            first=not self._has_begun,
            begun=self.message_is_open,
            system=self.system,
        )

    def attach(
        self,
        document: str,
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Reads a document now, so that the next message needn't wait for it.

        The document stands at the beginning of that message, as if both had been one prompt with a
        blank line between them.

        Args:
            document: the text, of any length.
            cancelled: called between chunks; True stops.
            progress: called with the number of tokens newly read.

        Raises:
            EdgeInfiniteError: as in `opening`; also if the document is no text, or empty.
            Cancelled: the rest of the document is read with the next message.
        """
        check_text("document", document)
        tokens = self.opening(document)
        self.message_is_open = True
        self.session.append(tokens, cancelled=cancelled, progress=progress)

    @property
    def _has_begun(self) -> bool:
        return bool(self.session.tokens_read or self.session.unread)

    def ask(
        self,
        message: str,
        *,
        sampler: Sampler | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        stop: Sequence[str] = (),
        grammar: Grammar | None = None,
        logprobs: int | None = None,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[str]:
        """Reads a message of any length and answers it.

        Args:
            message: the user's message.
            sampler: chooses the tokens; None makes one of `self.sampling`.
            max_new_tokens: the most tokens that the answer may have.
            stop: the answer ends before the first of these strings. The session then hasn't read
                the tokens that have characters of it.
            grammar: what the answer must look like, from `guidance`; for one answer.
            logprobs: how many of the likeliest tokens `statistics` lists with every token of the
                answer, 0 for the chosen one alone; None lists nothing.
            cancelled: called between chunks of the message and between tokens; True stops.
            progress: called with the number of tokens newly read.

        Yields:
            Pieces of the answer. A piece comes as soon as its characters are complete.

        Raises:
            EdgeInfiniteError: the artifact has no chat template, the message is no text or empty,
                or a number is out of range.
        """
        check_text("message", message)
        return self.answer(
            self.turn(message),
            sampler=sampler,
            max_new_tokens=max_new_tokens,
            stop=stop,
            grammar=grammar,
            logprobs=logprobs,
            cancelled=cancelled,
            progress=progress,
        )

    def answer(
        self,
        tokens: list[int],
        *,
        sampler: Sampler | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        stop: Sequence[str] = (),
        grammar: Grammar | None = None,
        logprobs: int | None = None,
        begins: bool = True,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[str]:
        """Does what `ask` does, for a prompt that is already tokenized.

        Args:
            tokens: the prompt.
            begins: whether the answer is a text of its own; False where it goes on in the middle
                of a text, so that a space before its first word stays.
        """
        self._text = text = AnswerText(self.tokenizer.stream(begins=begins), stop)
        self.message_is_open = False
        self._generation = generation = Generation(
            self.session,
            tokens,
            sampler=sampler or Sampler(self.sampling),
            stop_ids=self.tokenizer.stop_ids,
            max_new_tokens=max_new_tokens,
            text=text,
            grammar=grammar,
            logprobs=logprobs,
            cancelled=cancelled,
            progress=progress,
        )

        def pieces() -> Iterator[str]:
            for _ in generation:
                yield text.take()
            yield text.take()

        return pieces()

    def statistics(self) -> GenerationStatistics | None:
        """Statistics of the last answer; None before the first one."""
        if self._generation is None or self._text is None:
            return None
        return self._generation.statistics(
            text=self._text.text,
            engine=self.session.engine.name,
            artifact=self.artifact,
        )


def check_text(what: str, text: object) -> None:
    """Judges an argument that must be text with something in it.

    Raises:
        EdgeInfiniteError: it is another type, empty, or blank.
    """
    if not isinstance(text, str):
        raise EdgeInfiniteError(f"the {what} is of type {type(text).__name__}; give text")
    if not text.strip():
        raise EdgeInfiniteError(f"the {what} is empty; give text")
