"""When a session compresses and what stays in the cache (docs/develop/architecture.md).

Letters: S sinks, G recall slots, N segment, W window, C capacity.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Protocol

from edgeinfinite.runtime_py.session.carried import keep_newest

if TYPE_CHECKING:
    from edgeinfinite.artifact.geometry import Geometry
    from edgeinfinite.runtime_py.session.session import Session
    from edgeinfinite.runtime_py.session.state import State


class Policy(Protocol):
    """Decides when a session compresses and what stays cached. It has no state of its own."""

    def is_due(self, session: Session) -> bool:
        """Whether the session must compress before it reads another token."""
        ...

    def room(self, session: Session) -> int:
        """How many tokens may be read before `is_due` must be asked again, at least 1."""
        ...

    def compress(self, session: Session) -> None:
        """Removes the N oldest tokens from the residual, as the cache has no more room for them.

        `reencode` folds them into the memory if there is a gate, else it drops them; the session
        then reads the tokens after them again. `carry` keeps the highest-ranked pairs in the recall
        slots and moves the window down; with a gate it also folds the N tokens into the memory.
        """
        ...


class Reencode:
    """The paper's Algorithm 1: each segment starts after the sinks, the window is encoded again.

    While the text has t < C tokens, the cache holds all of them. From then on it holds the S sinks
    and a residual of r tokens, W <= r < W + N.
    """

    def is_due(self, session: Session) -> bool:
        complete = len(session.residual) >= session.engine.geometry.segment_length
        return complete and self._reaches_capacity(session)

    def room(self, session: Session) -> int:
        """Up to the segment's end if the segment will be compressed, else up to the text's end.

        Tokens after the segment must be encoded with the new memory. Reading them before the
        compression would mean encoding them twice.
        """
        geometry = session.engine.geometry
        if not self._reaches_capacity(session):
            return len(session.unread)
        return geometry.sink_length + geometry.segment_length - session.cached

    def compress(self, session: Session) -> None:
        """Lines 24-26: folds the N oldest tokens into the memory and re-reads those after them.

        The cached K, V of the N tokens were computed with the same sinks, positions and memory as
        in Algorithm 1, so no second pass over the segment is needed.
        """
        geometry = session.engine.geometry
        if session.engine.reads_memory:
            session.engine.compress_memory(session.state)
        session.unread[:0] = array("q", session.residual[geometry.segment_length :])
        session.residual.clear()
        session.state.length[:] = geometry.sink_length

    def _reaches_capacity(self, session: Session) -> bool:
        """Whether the text known so far fills the cache, so that a segment will be compressed."""
        return session.cached + len(session.unread) >= session.engine.geometry.capacity


class Carry:
    """The window moves along: every token sees at least the W before it, none is read twice.

    While the text has t <= C tokens, the cache holds all of them. From then on it holds the S
    sinks, the G pairs that the retention scorer ranks highest and a residual of r tokens,
    W < r <= W + N.
    """

    def is_due(self, session: Session) -> bool:
        return self._before_compression(session) == 0

    def room(self, session: Session) -> int:
        return min(self._before_compression(session), room_in_windows(session))

    def _before_compression(self, session: Session) -> int:
        """Tokens to read until the residual is full."""
        geometry = session.engine.geometry
        sinks_missing = max(0, geometry.sink_length - session.cached)
        most = geometry.segment_length + geometry.window_length
        return sinks_missing + most - len(session.residual)

    def compress(self, session: Session) -> None:
        """The engine fills the recall slots and moves the window.

        While the whole text fits the cache, nothing moves. The engine still folds and scores the
        tokens that leave the window, if the state has a memory and scores.
        """
        geometry, length = session.engine.geometry, session.state.length
        left = geometry.sink_length + geometry.window_length
        before = [int(used) for used in length]
        after = [
            min(geometry.kept_of(layer), used)
            if geometry.slides(layer)
            else left + min(geometry.slots_of(layer), used - left)
            for layer, used in enumerate(before)
        ]
        notes = session.engine.reads_memory or session.state.keeps_scores
        if notes or after != before:
            session.engine.compress_memory(session.state)
        del session.residual[: geometry.segment_length]
        length[:] = after


def room_in_windows(session: Session) -> int:
    """Tokens that may be read until a layer with a sliding window is full.

    A layer that is full counts as if `make_room` had been called.
    """
    geometry = session.engine.geometry
    if not geometry.has_windows:
        return sys.maxsize
    segment = geometry.segment_length
    used = enumerate(session.state.length.tolist())
    free = [geometry.kept_of(i) + segment - n or segment for i, n in used if geometry.slides(i)]
    return min(free)


def make_room(state: State, geometry: Geometry) -> None:
    """Drops from every full layer with a sliding window what no later token sees."""
    if not geometry.has_windows:
        return
    for layer, used in enumerate(state.length.tolist()):
        if geometry.slides(layer):
            kept = geometry.kept_of(layer)
            if used == kept + geometry.segment_length:
                keep_newest(state, layer, kept)


POLICY_OF: dict[str, Policy] = {"reencode": Reencode(), "carry": Carry()}
