"""Sessions take turns at one engine: a chunk of a prompt or a token of an answer each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

import numpy as np

from edgeinfinite.runtime_py.engines.base import Engine, Reader
from edgeinfinite.runtime_py.session.state import State


class FairLock:
    """A lock that is handed on in the order in which it was asked for.

    `threading.Lock` makes no such promise: a thread that asks again at once may get it every time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._lock:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()  # released by the holder before this one

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


class SharedEngine:
    """An engine for sessions in several threads, see `Engine`: one call at a time, in turns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = FairLock()
        self.name = engine.name
        self.geometry = engine.geometry
        self.vocabulary = engine.vocabulary
        self.reads_memory = engine.reads_memory
        self.chunk_length = engine.chunk_length

    @property
    def fingerprint(self) -> str:
        return self._engine.fingerprint

    @property
    def model_digest(self) -> str:
        return self._engine.model_digest

    @property
    def cache_scales(self) -> str:
        return self._engine.cache_scales

    def new_state(self) -> State:
        return self._engine.new_state()

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        with self._lock:
            return self._engine.prefill_segment(tokens, state)

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        with self._lock:
            return self._engine.decode_step(tokens, state)

    @contextmanager
    def reading(self, tokens: int) -> Iterator[Reader | None]:
        with ExitStack() as left:
            with self._lock:
                read = left.enter_context(self._engine.reading(tokens))

            def read_in_turn(chunk: np.ndarray, state: State) -> np.ndarray:
                assert read is not None
                with self._lock:
                    return read(chunk, state)

            try:
                yield read and read_in_turn
            finally:
                with self._lock:
                    left.close()

    def compress_memory(self, state: State) -> None:
        with self._lock:
            self._engine.compress_memory(state)
