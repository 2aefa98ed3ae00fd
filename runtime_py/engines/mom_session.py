"""A session that keeps the whole text: exact attention on a checkpoint, its KV cache on disk.

It takes the place of `session.Session` in a `Conversation`, for users who want the checkpoint's own
answer and have the time: a token's time grows with the text, as the cache does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture, architecture_of
from edgeinfinite.models.mom.reader import CHUNK, MomReader
from edgeinfinite.runtime_py.session.session import Cancelled, Session, new_unread


@dataclass(frozen=True, eq=False)
class MomEngine:
    """A checkpoint, and how to read with it; several sessions may share it.

    Args:
        model: a supported causal LM on the CPU, float32 or bfloat16.
        chunk: tokens that a layer reads at a time.
        folder: for the caches' files; None takes a folder on a disk.
    """

    model: PreTrainedModel
    chunk: int = CHUNK
    folder: Path | None = None
    name: str = "mom"

    @property
    def facts(self) -> Architecture:
        """Facts about the backbone."""
        return architecture_of(self.model)

    @property
    def vocabulary(self) -> int:
        """V."""
        return self.facts.vocabulary

    @property
    def bytes_per_token(self) -> int:
        """Of keys and values, in layers that attend to the whole text."""
        facts = self.facts
        full = sum(window == 0 for window in facts.sliding_windows)
        return 2 * full * facts.kv_heads * facts.head_dim * self.model.dtype.itemsize


class MomSession(Session):
    """See `Session`; nothing is ever compressed or dropped: `residual` is the whole text.

    Reading goes layer by layer, so a prompt that is cancelled stays unread as a whole.

    Args:
        engine: a `MomEngine`.

    Raises:
        EdgeInfiniteError: the model isn't supported.
    """

    def __init__(self, engine: Any) -> None:
        self.engine: Any = engine
        self.tokens_read = 0
        self.compressions = 0
        self.unread = new_unread()
        self.residual: list[int] = []
        self.reader = MomReader(engine.model, chunk=engine.chunk, folder=engine.folder)

    @property
    def can_fork(self) -> bool:
        """Whether `fork` works: no."""
        return False

    @property
    def may_stop_anywhere(self) -> bool:
        """A prompt is read as a whole, so reading stops nowhere in it."""
        return False

    @property
    def can_cut(self) -> bool:
        """Whether `cut` works: not with sliding windows, which don't hold what they left behind."""
        return self.reader.cache.can_cut

    def fork(self) -> Session:
        """Not possible: the cache is a file of this session's own."""
        raise EdgeInfiniteError("exact reading can't be forked: its KV cache is one file")

    def mark(self) -> Callable[[], None]:
        restore, tokens_read = self.reader.cache.mark(), self.tokens_read
        unread = new_unread(self.unread)

        def go_back() -> None:
            restore()
            self.tokens_read = tokens_read
            self.unread = unread
            del self.residual[tokens_read:]

        return go_back

    def cut(self, tokens: int) -> None:
        """Forgets all but the first `tokens` tokens; see `can_cut`."""
        self.reader.cache.cut(tokens)
        self.tokens_read = min(self.tokens_read, tokens)
        self.drop_unread()
        del self.residual[tokens:]

    def close(self) -> None:
        """Gives the disk's space back; the session can't be used any more."""
        self.reader.close()

    @property
    def cached(self) -> int:
        """Tokens in the cache: all that were read."""
        return self.tokens_read

    @property
    def state_bytes(self) -> int:
        """Bytes of the KV cache on disk; it grows with the text."""
        return self.reader.cache.disk_bytes

    def append(
        self,
        tokens: Sequence[int] | np.ndarray,
        *,
        progress: Callable[[int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> np.ndarray:
        """See `Session.append`; `progress` counts a token when all layers have read it, on average.

        Raises:
            EdgeInfiniteError: also if the text is longer than the checkpoint was trained for, or
                the disk is full.
        """
        self._check_length(len(self.unread) + len(tokens))
        self.add_unread(tokens)
        if not self.unread:
            raise EdgeInfiniteError("there is no token to read; give at least one")
        count = len(self.unread)
        steps = _Steps(count, len(self.engine.facts.layers), progress, cancelled)
        ids = torch.tensor([self.unread.tolist()])
        logits = self.reader.read(ids, before_chunk=steps)
        steps.finish()
        self.residual += self.unread.tolist()
        del self.unread[:]
        self.tokens_read += count
        last: np.ndarray = logits[0, -1].float().numpy()
        return last

    def _check_length(self, more: int) -> None:
        facts, length = self.engine.facts, self.tokens_read + more
        if length > facts.positions:
            raise EdgeInfiniteError(
                f"the text has {length:,} tokens, and {facts.name} was trained on "
                f"{facts.positions:,} positions; exact attention ends there: shorten the text, or "
                "read it with an artifact, whose state has a fixed size"
            )


class _Steps:
    """Turns chunks of layers into tokens of progress, and a request to stop into `Cancelled`."""

    def __init__(
        self,
        tokens: int,
        layers: int,
        progress: Callable[[int], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._tokens, self._layers = tokens, layers
        self._progress, self._cancelled = progress, cancelled
        self._work = self._told = 0

    def __call__(self, tokens: int) -> None:
        if self._cancelled and self._cancelled():
            raise Cancelled
        self._tell(self._work // self._layers)
        self._work += tokens

    def finish(self) -> None:
        self._tell(self._tokens)

    def _tell(self, tokens: int) -> None:
        if self._progress and tokens > self._told:
            self._progress(tokens - self._told)
        self._told = tokens
