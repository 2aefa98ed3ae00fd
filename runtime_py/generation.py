"""One answer: reads the prompt, then samples, yields and reads one token at a time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.sampling import Sampler
from edgeinfinite.runtime_py.session import Cancelled, Session
from edgeinfinite.runtime_py.statistics import (
    GenerationStatistics,
    peak_rss_bytes,
    step_figures,
)

MAX_NEW_TOKENS = 256
"""The default limit on an answer's tokens."""


class Generation:
    """Yields the tokens of one answer. It can be iterated over once.

        generation = Generation(session, tokens, sampler=sampler, stop_ids=stop_ids)
        for token in generation: ...

    After the iteration the session has read the prompt and every token that was yielded. It hasn't
    read the stop token, because `TextTokenizer.encode_turn` begins with the template's own end of
    the answer. If the prompt is cancelled halfway, the rest of it stays in the session as unread
    tokens, and the next `append` reads them first. Stop a generation through `cancelled`. If you
    leave the loop early instead, the session never reads the last token.

    Args:
        session: holds the text read so far; the prompt is appended to it.
        tokens: the prompt or the appended turn.
        sampler: chooses the tokens.
        stop_ids: tokens that end the answer.
        max_new_tokens: the most tokens that the answer may have.
        cancelled: called between chunks of the prompt and between tokens; True stops.
        progress: called with the number of prompt tokens newly read.

    Attributes:
        token_ids: tokens yielded so far.
        finish: None while the generation runs, then "stop", "length" or "cancelled".

    Raises:
        EdgeInfiniteError: the prompt is empty, `max_new_tokens` is below 1, or the sampler has a
            logit bias for a token outside the vocabulary.
    """

    def __init__(
        self,
        session: Session,
        tokens: Sequence[int],
        *,
        sampler: Sampler,
        stop_ids: Collection[int],
        max_new_tokens: int = MAX_NEW_TOKENS,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if not tokens:
            raise EdgeInfiniteError("prompt is empty; give at least one token of text")
        if max_new_tokens < 1:
            raise EdgeInfiniteError(f"max-new-tokens is {max_new_tokens}; give at least 1")
        sampler.options.check_vocabulary(session.engine.vocabulary)
        self._session = session
        self._tokens = tokens
        self._sampler = sampler
        self._stop_ids = frozenset(stop_ids)
        self._max_new_tokens = max_new_tokens
        self._cancelled = cancelled or (lambda: False)
        self._progress = progress
        self._prompt_tokens = 0
        self._prefill_s: float | None = None
        self._ttft_s: float | None = None
        self._steps: list[float] = []
        self.token_ids: list[int] = []
        self.finish: str | None = None

    def __iter__(self) -> Iterator[int]:
        if self.finish is not None or self._ttft_s is not None:
            raise RuntimeError("a Generation can be iterated over once only")
        before = self._session.tokens_read
        start = time.perf_counter()
        try:
            logits = self._session.append(
                self._tokens, progress=self._progress, cancelled=self._cancelled
            )
        except Cancelled:
            self.finish = "cancelled"
            return
        finally:
            self._prompt_tokens = self._session.tokens_read - before
        self._prefill_s = time.perf_counter() - start
        token = self._sample(logits)
        self._ttft_s = time.perf_counter() - start

        while token not in self._stop_ids:
            self.token_ids.append(token)
            yield token  # the consumer's own time isn't measured
            start = time.perf_counter()
            logits = self._session.append([token])
            if len(self.token_ids) == self._max_new_tokens:
                self.finish = "length"
                return
            if self._cancelled():
                self.finish = "cancelled"
                return
            token = self._sample(logits)
            self._steps.append(time.perf_counter() - start)
        self.finish = "stop"

    def _sample(self, logits: np.ndarray) -> int:
        return self._sampler.sample(logits, answer=self.token_ids, residual=self._session.residual)

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
