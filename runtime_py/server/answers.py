"""What a thread does for a request: continue a saved state, read, answer, and save."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.generation import Generation, Grammar
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.server.ask import Ask
from edgeinfinite.runtime_py.server.events import Finished, Held, Reading, Started
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.parts import AnswerParts
from edgeinfinite.runtime_py.server.served import States
from edgeinfinite.runtime_py.session.session import Cancelled, Session
from edgeinfinite.runtime_py.session.token_array import TokenIds
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

LONG_READING = 512
"""Tokens. What took at least as many to read is saved on disk also before its answer."""

_TAIL = 512
"""A long prompt is also saved where at most so many of its tokens are left, so that another
question about the same text needn't read the text again."""


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
        """Emits `Started`, `Reading`s, the answer's parts and `Finished`."""
        tokens = ask.prompt.encode(self.tokenizer)
        parts = AnswerParts(ask, tokens, self.tokenizer)
        try:
            grammar = self._grammar(parts, job)
        except Cancelled:
            self._metrics.cancelled.inc()
            return
        if ask.max_new_tokens == 0:
            held = self.read(tokens, job)
            if held is not None:
                job.emit(Finished("length", 0, tokens=tuple(tokens), held=held))
            return
        session = self._begin(tokens, job)
        try:
            finished = self._answer(ask, tokens, session, grammar, parts, job)
        finally:
            self._states.done(session)
        if finished is not None:  # told last: the client's next request finds the session
            job.emit(finished)

    def _answer(
        self,
        ask: Ask,
        tokens: list[int],
        session: Session,
        grammar: Grammar | None,
        parts: AnswerParts,
        job: Job,
    ) -> Finished | None:
        text = parts.text
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
        with suppress(Cancelled):  # the grammar was at work when the client left
            for _ in generation:
                if len(generation.token_ids) == 1:
                    self._metrics.first_token.observe(time.perf_counter() - job.created)
                parts.tell(job, generation.logprobs, text.whole_tokens)
        new_tokens = len(generation.token_ids)
        parts.tell(job, generation.logprobs, new_tokens, ended=True)
        self._metrics.answer_tokens.inc(new_tokens)
        read = (*tokens, *generation.token_ids)
        self._save(read, session, job)
        if generation.finish in ("cancelled", None):
            return None
        reason = generation.finish
        if parts.calls:  # one that was going round was cut, perhaps amid its arguments
            reason = {"stop": "calls", "repetition": "length"}.get(reason, reason)
        return Finished(
            reason,
            new_tokens,
            text.stopped_by,
            read,
            Held.by(session),
            min(parts.thought_tokens, new_tokens),
        )

    def _grammar(self, parts: AnswerParts, job: Job) -> Grammar | None:
        if not parts.wants_grammar:
            return None
        try:
            with self._lock:
                if self._guidance is None:
                    self._guidance = Guidance(self.tokenizer, self._states.engine.vocabulary)
        except EdgeInfiniteError:
            if parts.needs_grammar:
                raise
            return None  # a call may come, and is read as it comes
        return parts.grammar(self._guidance, job)

    def read(self, tokens: TokenIds, job: Job) -> Held | None:
        """Reads a text ahead; emits `Started` and `Reading`s. None: the client left before."""
        session = self._begin(tokens, job)
        try:
            session.append(
                tokens[session.tokens_read :],
                cancelled=job.cancelled,
                progress=self._progress(tokens, session, job),
            )
            return Held.by(session)
        except Cancelled:
            self._save(tokens, session, job)
            return None
        finally:
            self._states.done(session)

    def _begin(self, tokens: TokenIds, job: Job) -> Session:
        if not len(tokens):
            raise EdgeInfiniteError("prompt is empty; give at least one token of text")
        session = self._states.continued(tokens)
        self._metrics.prompt_tokens.inc(len(tokens))
        self._metrics.cached_tokens.inc(session.tokens_read)
        job.emit(Started(len(tokens), session.tokens_read))
        return session

    def _progress(self, tokens: TokenIds, session: Session, job: Job) -> Callable[[int], None]:
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

    def _save(self, tokens: TokenIds, session: Session, job: Job) -> None:
        """Saves the state at the end of an answer, or what was read before the client left."""
        if job.cancelled():
            self._metrics.cancelled.inc()
        if not session.unread or session.may_stop_anywhere:
            session.drop_unread()
            self._states.keep(tokens, session, on_disk=True)
