"""What a session needs of an engine.

Letters: T new tokens, V vocabulary, S sinks, N segment, W window.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.session.state import State

Reader: TypeAlias = Callable[[np.ndarray, State], np.ndarray]
"""Reads one or more tokens in place of `Engine.prefill_segment` and `Engine.decode_step`."""


class Engine(Protocol):
    """The three graphs (docs/develop/architecture.md) over states that the host owns.

    An engine holds weights but no text, so several sessions may share it. It never changes
    `length` and `has_memory`, which belong to the session.
    """

    name: str
    """For statistics: `onnx`, `executorch`, `torch`."""

    geometry: Geometry
    vocabulary: int
    reads_memory: bool
    """Whether there is a gate, so that `memory` and `memory_norm` are kept and read. Without a gate
    a compression under `reencode` drops the N tokens. Under `carry` it keeps those that rank high
    enough for the recall slots, with or without a gate."""

    chunk_length: int
    """The fastest T of a prefill call for this engine; any T from 1 to N works."""

    @property
    def fingerprint(self) -> str:
        """Identifies weights, gate, scorer and quantization; equal ones go on from each other's
        states bit for bit.
        """
        ...

    @property
    def model_digest(self) -> str:
        """Identifies checkpoint, gate and scorer (`artifact.manifest.digest_of_model`); equal ones
        take over each other's states, which then go on with this engine's rounding.
        """
        ...

    @property
    def cache_scales(self) -> str:
        """Identifies the scales of an int8 cache (`artifact.manifest.scales_digest`); with equal
        ones a byte stands for the same number. "" for other caches.
        """
        ...

    def new_state(self) -> State:
        """An empty state."""
        ...

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        """Reads T tokens of one segment into the cache at slots `length`..`length + T - 1`.

        Args:
            tokens: `[1, T]` int64, 1 <= T.
            state: caches updated in place.

        Returns:
            Logits `[V]` float32 of the last token, a buffer of the caller's own.
        """
        ...

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        """The same for one token, `[1, 1]`."""
        ...

    def reading(self, tokens: int) -> AbstractContextManager[Reader | None]:
        """Before a text is read: gives what to call for all of it; None for the engine's graphs.

        An engine may have a faster way for a long text, which rounds otherwise.

        Args:
            tokens: that will be read.
        """
        ...

    def compress_memory(self, state: State) -> None:
        """Processes the N oldest residual tokens, which leave the residual, as the policy says.

        `reencode` folds them into `memory` and `memory_norm` and leaves the caches alone; without a
        gate the session doesn't call this. `carry` scores their pairs and ranks them with those in
        the recall slots. The highest fill the slots, the window moves down behind them with its
        keys rotated to their new positions, and `scores_i` become the scores of the pairs that
        stay. With a gate it also folds all N into `memory` and `memory_norm`. The session sets
        `length` and `has_memory` afterwards.

        Args:
            state: under `reencode` with S + N or more slots in use, under `carry` with N + W
                residual tokens; updated in place.
        """
        ...


def usable_cpus() -> int:
    """The number of CPUs that this process may use; all of them if the system doesn't say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def failed(runtime: str, graph: str, error: Exception) -> EdgeInfiniteError:
    """What a user can do about a call that failed; the session goes on from where it was."""
    reason = " ".join(str(error).split())[:200]
    return EdgeInfiniteError(
        f"{runtime} failed in {graph}: {reason}; where memory is short, close other programs or "
        "export with a smaller --state-mb"
    )
