"""What a thread does for a request: continue a saved state, read, answer, and save."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.generation import Generation
from edgeinfinite.runtime_py.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.states import SavedStates
from edgeinfinite.runtime_py.session import Cancelled, Session
from edgeinfinite.runtime_py.tokenizer import TextTokenizer

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
        max_new_tokens: the most tokens that the answer may have.
    """

    encode: Callable[[TextTokenizer], list[int]]
    sampling: SamplingOptions
    max_new_tokens: int


@dataclass(frozen=True)
class Started:
    """The prompt's tokens, and how many of them a saved state has read already."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Reading:
    """How many tokens of the prompt have been read, those of the saved state included."""

    tokens: int
    compressions: int


@dataclass(frozen=True)
class Piece:
    """A piece of the answer's text, never empty."""

    text: str


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

    def __init__(self, tokenizer: TextTokenizer, states: SavedStates, metrics: Metrics) -> None:
        self.tokenizer = tokenizer
        self._states = states
        self._metrics = metrics

    def answer(self, ask: Ask, job: Job) -> None:
        """Emits `Started`, `Reading`s, `Piece`s and `Finished`."""
        tokens = ask.encode(self.tokenizer)
        session = self._begin(tokens, job)
        generation = Generation(
            session,
            tokens[session.tokens_read :],
            sampler=Sampler(ask.sampling),
            stop_ids=self.tokenizer.stop_ids,
            max_new_tokens=ask.max_new_tokens,
            cancelled=job.cancelled,
            progress=self._progress(tokens, session, job),
        )
        stream = self.tokenizer.stream()
        for token in generation:
            if len(generation.token_ids) == 1:
                self._metrics.first_token.observe(time.perf_counter() - job.created)
            _emit(job, stream.push(token))
        self._metrics.answer_tokens.inc(len(generation.token_ids))
        self._save([*tokens, *generation.token_ids], session, job)
        if generation.finish == "cancelled":
            return
        _emit(job, stream.flush())
        job.emit(Finished(generation.finish or "stop", len(generation.token_ids)))

    def read(self, tokens: Sequence[int], job: Job) -> None:
        """Reads a text ahead; emits `Started` and `Reading`s."""
        session = self._begin(tokens, job)
        try:
            session.append(
                tokens[session.tokens_read :],
                cancelled=job.cancelled,
                progress=self._progress(tokens, session, job),
            )
        except Cancelled:
            self._save(tokens, session, job)

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
        new = len(tokens) - session.tokens_read
        tail_is_due = new >= 2 * _TAIL and _may_stop_anywhere(session)

        def progress(_: int) -> None:
            nonlocal tail_is_due
            left = len(tokens) - session.tokens_read
            job.emit(Reading(session.tokens_read, session.compressions))
            if left == 0 or (tail_is_due and left <= _TAIL):
                tail_is_due = False
                self._states.keep(tokens, session, on_disk=new >= LONG_READING)

        return progress

    def _save(self, tokens: Sequence[int], session: Session, job: Job) -> None:
        """Saves the state at the end of an answer, or what was read before the client left."""
        if job.cancelled():
            self._metrics.cancelled.inc()
        if not session.unread or _may_stop_anywhere(session):
            session.drop_unread()
            self._states.keep(tokens, session, on_disk=True)


def _may_stop_anywhere(session: Session) -> bool:
    """Whether a state in the middle of a text is that of a text which ends there.

    Not under `reencode`, which looks ahead: it compresses as soon as it knows that the text is
    longer than the cache.
    """
    return session.engine.geometry.policy == "carry"


def _emit(job: Job, text: str) -> None:
    if text:
        job.emit(Piece(text))
