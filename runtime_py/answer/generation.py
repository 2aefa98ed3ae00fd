"""One answer: reads the prompt, then samples, yields and reads one token at a time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.runtime_py.answer.answer_figures import GenerationStatistics, step_figures
from edgeinfinite.runtime_py.answer.answer_text import AnswerText
from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs, token_logprobs
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.session.session import Cancelled, Session

MAX_NEW_TOKENS = 256
"""The default limit on an answer's tokens."""


class Grammar(Protocol):
    """What an answer must look like: says which tokens may come next. Holds for one answer."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing may follow the accepted tokens."""

    def allowed(self) -> np.ndarray:
        """Bool [V]: the tokens that may come next; stop tokens where the answer may end."""

    def accept(self, token: int) -> None:
        """The answer goes on with `token`, one of those allowed."""


class Generation:
    """Yields the tokens of one answer. It can be iterated over once.

        generation = Generation(session, tokens, sampler=sampler, stop_ids=stop_ids)
        for token in generation: ...

    After the iteration the session has read the prompt and `token_ids`. It hasn't read the stop
    token, because `TextTokenizer.encode_turn` begins with the template's own end of the answer.
    When a stop string ends the answer, the session goes back: it hasn't read the tokens of the stop
    string, nor a token that holds both its first characters and the answer's last ones; nor are
    they among `token_ids` then. For that it keeps a fork while text is held back, which copies the
    state when the next token is read.

    If the prompt is cancelled halfway, the rest of it stays in the session as unread tokens, and
    the next `append` reads them first. Stop a generation through `cancelled`. If you leave the loop
    early instead, the session never reads the last token.

    Args:
        session: holds the text read so far; the prompt is appended to it.
        tokens: the prompt or the appended turn.
        sampler: chooses the tokens.
        stop_ids: tokens that end the answer.
        max_new_tokens: the most tokens that the answer may have.
        text: takes the tokens, and ends the answer at a stop string; None for tokens alone.
        grammar: restricts the tokens; the answer ends when it is finished, and not because it
            repeats itself.
        logprobs: how many of the likeliest tokens to note for every token of the answer, 0 for the
            chosen one alone; None notes nothing.
        cancelled: called between chunks of the prompt and between tokens; True stops.
        progress: called with the number of prompt tokens newly read.

    Attributes:
        token_ids: tokens yielded so far.
        logprobs: theirs, if asked for.
        finish: None while the generation runs, then "stop", "length", "cancelled", or "repetition":
            the sampler's options end an answer that says one piece over and over. What it said is
            read and stays.

    Raises:
        EdgeInfiniteError: the prompt is empty, `max_new_tokens` is below 1, `logprobs` below 0, or
            the sampler has a logit bias for a token outside the vocabulary.
    """

    def __init__(
        self,
        session: Session,
        tokens: Sequence[int],
        *,
        sampler: Sampler,
        stop_ids: Collection[int],
        max_new_tokens: int = MAX_NEW_TOKENS,
        text: AnswerText | None = None,
        grammar: Grammar | None = None,
        logprobs: int | None = None,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if not tokens:
            raise EdgeInfiniteError("prompt is empty; give at least one token of text")
        if max_new_tokens < 1:
            raise EdgeInfiniteError(f"max-new-tokens is {max_new_tokens}; give at least 1")
        if logprobs is not None and logprobs < 0:
            raise EdgeInfiniteError(f"logprobs is {logprobs}; give at least 0")
        sampler.options.check_vocabulary(session.engine.vocabulary)
        self._session = session
        self._tokens = tokens
        self._sampler = sampler
        self._stop_ids = frozenset(stop_ids)
        self._max_new_tokens = max_new_tokens
        self._text = text
        self._grammar = grammar
        self._top = logprobs
        self._cancelled = cancelled or (lambda: False)
        self._progress = progress
        self._prompt_tokens = 0
        self._prefill_s: float | None = None
        self._ttft_s: float | None = None
        self._steps: list[float] = []
        # Tokens of the answer that the session had read, and how it goes back there.
        self._mark: tuple[int, Callable[[], None]] | None = None
        self.token_ids: list[int] = []
        self.logprobs: list[TokenLogprobs] = []
        self.finish: str | None = None

    def __iter__(self) -> Iterator[int]:
        if self.finish is not None or self._ttft_s is not None:
            raise RuntimeError("a Generation can be iterated over once only")
        start = time.perf_counter()
        logits = self._read_prompt(start)
        if logits is None:
            self.finish = "cancelled"
            return
        token = self._choose(logits)
        self._ttft_s = time.perf_counter() - start
        finish = "stop"
        while token not in self._stop_ids:
            self._add(logits, token)
            if self._ends_in_text():
                break
            yield token  # the consumer's own time isn't measured
            start = time.perf_counter()
            logits = self._session.append([token])
            if self._grammar is not None and self._grammar.is_finished:
                break
            if self._repeats():
                finish = "repetition"
                break
            if len(self.token_ids) == self._max_new_tokens:
                finish = "length"
                break
            if self._cancelled():
                finish = "cancelled"
                break
            token = self._choose(logits)
            self._steps.append(time.perf_counter() - start)
        self.finish = "stop" if self._finish_text() else finish

    def _read_prompt(self, start: float) -> np.ndarray | None:
        """Logits [V] after the prompt; None if reading was cancelled."""
        before = self._session.tokens_read
        try:
            logits = self._session.append(
                self._tokens, progress=self._progress, cancelled=self._cancelled
            )
        except Cancelled:
            return None
        finally:
            self._prompt_tokens = self._session.tokens_read - before
        self._prefill_s = time.perf_counter() - start
        return logits

    def _choose(self, logits: np.ndarray) -> int:
        grammar = self._grammar
        token = self._sampler.sample(
            logits,
            answer=self.token_ids,
            allowed=None if grammar is None else grammar.allowed(),
        )
        if grammar is not None:
            grammar.accept(token)
        return token

    def _repeats(self) -> bool:
        detection = self._sampler.options.repetition_detection
        return self._grammar is None and detection.found(self.token_ids)

    def _add(self, logits: np.ndarray, token: int) -> None:
        self.token_ids.append(token)
        if self._top is not None:
            self.logprobs.append(token_logprobs(logits, token, self._top))
        if self._text is not None:
            self._text.push(token)

    def _ends_in_text(self) -> bool:
        """Whether the newest token, not read yet, completes a stop string."""
        if self._text is None or not self._text.has_stop:
            return False
        if self._text.stopped_by is not None:
            self._forget_stop_string()
            return True
        if self._text.whole_tokens == len(self.token_ids):
            self._mark = None
        elif self._mark is None:
            self._mark = len(self.token_ids) - 1, self._session.mark()
        return False

    def _finish_text(self) -> bool:
        """Completes the text; whether a stop string stands in it."""
        if self._text is None:
            return False
        if self._text.stopped_by is None and self._text.finish():
            self._forget_stop_string()
        self._mark = None
        return self._text.stopped_by is not None

    def _forget_stop_string(self) -> None:
        """Takes the stop string's tokens back; the session may have read all but the last."""
        assert self._text is not None
        whole = self._text.whole_tokens
        if self._mark is not None:
            read, go_back = self._mark
            go_back()
            if read < whole:
                self._session.append(self.token_ids[read:whole])
        del self.token_ids[whole:]
        del self.logprobs[whole:]

    def statistics(self, *, text: str, engine: str, artifact: str) -> GenerationStatistics:
        """Times and counts of the answer so far.

        Args:
            text: the answer's text.
            engine: the engine's name.
            artifact: the artifact's folder.
        """
        rate, median, slowest = step_figures(self._steps)
        prefill_s = self._prefill_s
        return GenerationStatistics(
            text=text,
            token_ids=list(self.token_ids),
            prompt_tokens=self._prompt_tokens,
            new_tokens=len(self.token_ids),
            ttft_s=self._ttft_s,
            prefill_tokens_per_s=self._prompt_tokens / prefill_s if prefill_s else None,
            decode_tokens_per_s=rate,
            median_token_s=median,
            slowest_token_s=slowest,
            compressions=self._session.compressions,
            state_bytes=self._session.state_bytes,
            peak_rss_bytes=peak_rss_bytes(),
            engine=engine,
            artifact=artifact,
            finish=self.finish,
            logprobs=list(self.logprobs) if self._top is not None else None,
        )


class Terminated(KeyboardInterrupt):
    """The system asks the program to end (SIGTERM)."""


class Interruption:
    """Yielded by `interruptible`; calling it returns whether to stop."""

    def __init__(self) -> None:
        self._pressed = threading.Event()
        self.terminated = False
        """Whether the program must end after it has saved its work (SIGTERM)."""

    def __call__(self) -> bool:
        """Whether Ctrl-C was pressed or SIGTERM was received."""
        return self._pressed.is_set()

    def _on_signal(self, number: int, _: object) -> None:
        pressed = self._pressed.is_set()
        self.terminated |= number == signal.SIGTERM
        if pressed:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
        self._pressed.set()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turns the first Ctrl-C or SIGTERM into a request to cancel: the object then gives True.

    Raises:
        KeyboardInterrupt: at the second one.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # signals reach the main thread only
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, interruption._on_signal) for number in numbers]
    try:
        yield interruption
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
