"""Algorithm 1 of EdgeInfinite (arXiv 2503.22196): one text, read with a state of fixed size.

While the text fits the cache, attention is exact. From then on the cache holds the sinks and the
newest tokens (and under `carry` recall slots, see `policies.py`), and with a gate the memory holds
the rest. The state depends on the tokens alone, not on how they were fed: as one prompt, as several
turns, or token by token (docs/develop/architecture.md, invariant 1).

Letters: S sinks, N segment, W window, C capacity, T tokens of one call, V vocabulary.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Engine, Reader
from edgeinfinite.runtime_py.session.forks import leave, part_from_forks, share
from edgeinfinite.runtime_py.session.policies import POLICY_OF, Policy, make_room
from edgeinfinite.runtime_py.session.state import State
from edgeinfinite.runtime_py.session.token_array import token_array


def new_unread(tokens: Iterable[int] = ()) -> array[int]:
    """Token ids at 8 bytes each. As Python objects a book's ids would take far more memory."""
    return array("q", tokens)


class Cancelled(Exception):
    """Reading was stopped between two chunks; `Session.unread` holds the tokens left to read."""


class Session:
    """Reads one text, in any number of pieces.

    Args:
        engine: computes the graphs; may be shared with other sessions.
        chunk_length: the most tokens of one prefill call; None lets the engine choose. It changes
            speed and memory use, never the result: chunks of one segment read the same memory.

    Attributes:
        state: the arrays, see `State`.
        tokens_read: tokens of the text in the cache or in the memory.
        compressions: compressions so far; each removes N tokens from the residual.
        unread: tokens accepted but not read (int64), empty unless reading was cancelled.
        residual: ids of the tokens in the cache after the sinks, oldest first.
        taken_over: the text was begun by another artifact of the same model (`load_session`).

    Raises:
        EdgeInfiniteError: chunk_length is below 1.
    """

    def __init__(self, engine: Engine, *, chunk_length: int | None = None) -> None:
        if chunk_length is not None and chunk_length < 1:
            raise EdgeInfiniteError(f"chunk length is {chunk_length}; give at least 1")
        self.engine = engine
        self._policy: Policy = POLICY_OF[engine.geometry.policy]
        self.chunk_length = chunk_length or engine.chunk_length
        self.state: State = engine.new_state()
        self.tokens_read = 0
        self.compressions = 0
        self.unread = new_unread()
        self.residual: list[int] = []
        self.taken_over = False

    @property
    def can_fork(self) -> bool:
        """Whether `fork` works; `mark` always does."""
        return True

    @property
    def may_stop_anywhere(self) -> bool:
        """Whether a state in the middle of a text is that of a text which ends there.

        Not under `reencode`, which looks ahead: it compresses as soon as it knows that the text is
        longer than the cache.
        """
        return self.engine.geometry.policy == "carry"

    def fork(self) -> Session:
        """A session that goes on from here by itself, and leaves this one as it is.

        Both share the state's arrays until one of them reads a token; only then are they copied.
        What was evicted can't be brought back, so a fork is also the only way to undo: fork before
        a turn, and go on with the fork. Forks may read at the same time in several threads, but
        `fork` and `save_session` read the arrays: don't call them while a thread is in `append` of
        one that shares them.
        """
        fork = copy.copy(self)
        fork.residual = list(self.residual)
        fork.unread = new_unread(self.unread)
        share(self.state, self, fork)
        return fork

    def go_back(self, fork: Session) -> None:
        """Continues from where `fork` stands, in place; what was read since is forgotten.

        Args:
            fork: made by `fork`, of this session or of one like it. It stays as it is.
        """
        leave(self)
        self.state = fork.state
        self.tokens_read = fork.tokens_read
        self.compressions = fork.compressions
        self.residual = list(fork.residual)
        self.unread = new_unread(fork.unread)
        share(self.state, self, fork)

    def mark(self) -> Callable[[], None]:
        """Remembers where the session stands; calling the result, once, brings it back there."""
        fork = self.fork()
        return lambda: self.go_back(fork)

    @property
    def cached(self) -> int:
        """Slots in use in the layer with most: sinks, recall slots and residual, at most C."""
        return int(self.state.length[self.engine.geometry.longest_layer])

    @property
    def state_bytes(self) -> int:
        """Bytes of the state, constant."""
        return self.state.nbytes

    def append(
        self,
        tokens: Sequence[int] | np.ndarray,
        *,
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> np.ndarray:
        """Reads the next tokens of the text: a prompt, an appended turn, or the one just sampled.

        Args:
            tokens: token ids; may be empty to resume a cancelled reading.
            progress: called after every chunk with the number of tokens newly read.
            cancelled: called before every chunk; True stops the reading.

        Returns:
            Logits `[V]` float32 of the last token.

        Raises:
            EdgeInfiniteError: no token to read, or one outside the vocabulary (nothing is read).
            Cancelled: the state stays valid; `append([])` resumes, `drop_unread` drops the rest.
        """
        self.add_unread(tokens)
        if not self.unread:
            raise EdgeInfiniteError("there is no token to read; give at least one")
        part_from_forks(self)
        logits: np.ndarray | None = None
        with self.engine.reading(len(self.unread)) as reader:
            while self.unread:
                before = self.tokens_read
                # Re-reading the window leaves a gap in the cache, so it can't be cancelled halfway.
                if cancelled and not self._rereading and cancelled():
                    raise Cancelled
                if self._policy.is_due(self):
                    self._compress()
                    continue
                room = self._policy.room(self)
                logits = self._read(min(self.chunk_length, room, len(self.unread)), reader)
                if progress and self.tokens_read > before:
                    progress(self.tokens_read - before)
        assert logits is not None  # the loop ends by reading, never by compressing
        return logits

    def add_unread(self, tokens: Sequence[int] | np.ndarray) -> None:
        """Accepts the next tokens of the text; the next `append`, which may be `[]`, reads them.

        Raises:
            EdgeInfiniteError: one is outside the vocabulary (none is accepted).
        """
        new = token_array(tokens)
        outside = new[(new < 0) | (new >= self.engine.vocabulary)]
        if outside.size:
            raise EdgeInfiniteError(
                f"token {outside[0]} is outside the vocabulary of {self.engine.vocabulary}; "
                "use the model's own tokenizer"
            )
        self.unread.frombytes(new.tobytes())

    def drop_unread(self) -> None:
        """Drops what a cancelled `append` hasn't read; the text continues at `tokens_read`."""
        del self.unread[:]

    @property
    def _position(self) -> int:
        """Tokens of the text before the next one to read; less than `tokens_read` in a re-read."""
        geometry = self.engine.geometry
        folded = self.compressions * geometry.segment_length
        return folded + min(self.cached, geometry.sink_length) + len(self.residual)

    @property
    def _rereading(self) -> bool:
        return self._position < self.tokens_read

    def _compress(self) -> None:
        self._policy.compress(self)
        self.compressions += 1
        if self.engine.reads_memory:
            self.state.has_memory[:] = 1.0

    def _read(self, count: int, reader: Reader | None) -> np.ndarray:
        make_room(self.state, self.engine.geometry)
        chunk = np.array(self.unread[:count], dtype=np.int64)[np.newaxis]
        graph = self.engine.decode_step if count == 1 else self.engine.prefill_segment
        logits = (reader or graph)(chunk, self.state)
        # Counters change only now, so that an engine that fails leaves the session as it was.
        sinks_missing = max(0, self.engine.geometry.sink_length - self.cached)
        self.residual += self.unread[sinks_missing:count].tolist()
        del self.unread[:count]
        self.state.length[:] += count
        self.tokens_read = max(self.tokens_read, self._position)
        return logits
