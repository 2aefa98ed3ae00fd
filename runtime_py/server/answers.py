"""What a thread does for a request: continue a saved state, read, answer, and save."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.answer_text import AnswerText
from edgeinfinite.runtime_py.answer.generation import Generation, Grammar
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.served import States
from edgeinfinite.runtime_py.session.session import Cancelled, Session
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

LONG_READING = 512
"""Tokens. What took at least as many to read is saved on disk also before its answer."""

_TAIL = 512
"""A long prompt is also saved where at most so many of its tokens are left, so that another
question about the same text needn't read the text again."""


@dataclass(frozen=True)
class Ask:
    """What to answer.

    Args:
        encode: makes the prompt's tokens.
        sampling: how to choose the answer's tokens.
        max_new_tokens: the most tokens that the answer may have; 0 only reads the prompt.
        begins: whether the answer is a text of its own, rather than the rest of one.
        stop: strings that end the answer.
        logprobs: how many likely tokens to list for each token; None lists nothing.
        schema: a JSON schema that the answer must follow, as JSON; None for any text.
    """

    encode: Callable[[TextTokenizer], list[int]]
    sampling: SamplingOptions
    max_new_tokens: int
    begins: bool = True
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    schema: str | None = None


@dataclass(frozen=True)
class Started:
    """The prompt's tokens, and how many of them a saved state has read already."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Reading:
    """How many tokens of the prompt have been read, those of the saved state included.

    `seconds` have passed since the reading began.
    """

    tokens: int
    compressions: int
    seconds: float


@dataclass(frozen=True)
class Piece:
    """A piece of the answer's text, and the log-probabilities of its tokens if asked for.

    Text may come before its tokens' log-probabilities, where a stop string may follow.
    """

    text: str
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True)
class Finished:
    """Why the answer ended, `stop` or `length`, and its tokens."""

    reason: str
    new_tokens: int


class Answers:
    """Answers asks and reads texts ahead; each call in a thread of its own.

    Args:
        tokenizer: the artifact's.
        states: saved states; they know the engine.
        metrics: counts what is done.
    """

    def __init__(self, tokenizer: TextTokenizer, states: States, metrics: Metrics) -> None:
        self.tokenizer = tokenizer
        self._states = states
        self._metrics = metrics
        self._lock = threading.Lock()
        self._guidance: Guidance | None = None

    def answer(self, ask: Ask, job: Job) -> None:
        """Emits `Started`, `Reading`s, `Piece`s and `Finished`."""
        try:
            grammar = self._grammar(ask.schema, job)
        except Cancelled:
            self._metrics.cancelled.inc()
            return
        tokens = ask.encode(self.tokenizer)
        if ask.max_new_tokens == 0:
            if self.read(tokens, job):
                job.emit(Finished("length", 0))
            return
        session = self._begin(tokens, job)
        try:
            finished = self._answer(ask, tokens, session, grammar, job)
        finally:
            self._states.done(session)
        if finished is not None:  # told last: the client's next request finds the session
            job.emit(finished)

    def _answer(
        self, ask: Ask, tokens: list[int], session: Session, grammar: Grammar | None, job: Job
    ) -> Finished | None:
        text = AnswerText(self.tokenizer.stream(begins=ask.begins), ask.stop)
        generation = Generation(
            session,
            tokens[session.tokens_read :],
            sampler=Sampler(ask.sampling),
            stop_ids=self.tokenizer.stop_ids,
            max_new_tokens=ask.max_new_tokens,
            text=text,
            grammar=grammar,
            logprobs=ask.logprobs,
            cancelled=job.cancelled,
            progress=self._progress(tokens, session, job),
        )
        told = 0
        with suppress(Cancelled):  # the grammar was at work when the client left
            for _ in generation:
                if len(generation.token_ids) == 1:
                    self._metrics.first_token.observe(time.perf_counter() - job.created)
                told = _tell(job, text.take(), generation.logprobs, told, text.whole_tokens)
        new_tokens = len(generation.token_ids)
        _tell(job, text.take(), generation.logprobs, told, new_tokens)
        self._metrics.answer_tokens.inc(new_tokens)
        self._save([*tokens, *generation.token_ids], session, job)
        if generation.finish in ("cancelled", None):
            return None
        return Finished(generation.finish, new_tokens)

    def _grammar(self, schema: str | None, job: Job) -> Grammar | None:
        if schema is None:
            return None
        with self._lock:
            if self._guidance is None:
                self._guidance = Guidance(self.tokenizer, self._states.engine.vocabulary)
        return self._guidance.json_schema(schema, cancelled=job.cancelled)

    def read(self, tokens: Sequence[int], job: Job) -> bool:
        """Reads a text ahead; emits `Started` and `Reading`s. False: the client left before."""
        session = self._begin(tokens, job)
        try:
            session.append(
                tokens[session.tokens_read :],
                cancelled=job.cancelled,
                progress=self._progress(tokens, session, job),
            )
        except Cancelled:
            self._save(tokens, session, job)
            return False
        finally:
            self._states.done(session)
        return True

    def _begin(self, tokens: Sequence[int], job: Job) -> Session:
        if not tokens:
            raise EdgeInfiniteError("prompt is empty; give at least one token of text")
        session = self._states.continued(tokens)
        self._metrics.prompt_tokens.inc(len(tokens))
        self._metrics.cached_tokens.inc(session.tokens_read)
        job.emit(Started(len(tokens), session.tokens_read))
        return session

    def _progress(self, tokens: Sequence[int], session: Session, job: Job) -> Callable[[int], None]:
        """Reports, and saves the state at the end of the prompt and, of a long one, before."""
        read = session.tokens_read
        new = len(tokens) - read
        tail_is_due = new >= 2 * _TAIL and session.may_stop_anywhere
        began = time.monotonic()

        def progress(count: int) -> None:
            nonlocal read, tail_is_due
            read += count
            left = len(tokens) - read
            job.emit(Reading(read, session.compressions, time.monotonic() - began))
            if left == 0 or (tail_is_due and left <= _TAIL):
                tail_is_due = False
                self._states.keep(tokens, session, on_disk=new >= LONG_READING)

        return progress

    def _save(self, tokens: Sequence[int], session: Session, job: Job) -> None:
        """Saves the state at the end of an answer, or what was read before the client left."""
        if job.cancelled():
            self._metrics.cancelled.inc()
        if not session.unread or session.may_stop_anywhere:
            session.drop_unread()
            self._states.keep(tokens, session, on_disk=True)


def _tell(job: Job, text: str, logprobs: Sequence[TokenLogprobs], told: int, whole: int) -> int:
    """Emits new text, and the log-probabilities from token `told` to `whole`, which it returns."""
    new = tuple(logprobs[told:whole])
    if text or new:
        job.emit(Piece(text, new))
    return whole
