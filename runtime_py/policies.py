"""When a session compresses and what stays in the cache: the two policies (docs/architecture.md).

Letters: S sinks, G recall slots, N segment, W window, C capacity.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgeinfinite.runtime_py.session import Session


class Policy(Protocol):
    """Decides over a session's cache; has no state of its own."""

    def is_due(self, session: Session) -> bool:
        """Whether to compress before anything more is read."""
        ...

    def room(self, session: Session) -> int:
        """Tokens that may be read before that has to be asked again, at least 1."""
        ...

    def compress(self, session: Session) -> None:
        """Makes room: the N oldest residual tokens leave the cache.

        Under `reencode` they are folded into the memory if there is a gate, else forgotten; the
        tokens after them are read again. Under `carry` the recall slots take the pairs that rank
        highest, the window moves down, and with a gate the N are folded into the memory too.
        """
        ...


class Reencode:
    """The paper's Algorithm 1: segments start from the sinks, the window is encoded again.

    While t < C the cache holds all of the text; from then on the S sinks and a residual of
    W <= r < W + N tokens.
    """

    def is_due(self, session: Session) -> bool:
        complete = len(session.residual) >= session.engine.geometry.segment_length
        return complete and self._reaches_capacity(session)

    def room(self, session: Session) -> int:
        """To the segment's end if it will be compressed, else as far as the text goes.

        What follows the segment must be encoded with the new memory, so reading it before the
        compression would be work done twice.
        """
        geometry = session.engine.geometry
        if not self._reaches_capacity(session):
            return len(session.unread)
        return geometry.sink_length + geometry.segment_length - session.cached

    def compress(self, session: Session) -> None:
        """Lines 24-26: N oldest into the memory, the tokens after them are to be read again.

        Their K, V in the cache were computed with the sinks, positions and memory that Algorithm 1
        would compute them with, so no second pass over the segment is needed.
        """
        geometry = session.engine.geometry
        if session.engine.reads_memory:
            session.engine.compress_memory(session.state)
        session.unread[:0] = array("q", session.residual[geometry.segment_length :])
        session.residual.clear()
        session.state.length[:] = geometry.sink_length

    def _reaches_capacity(self, session: Session) -> bool:
        """Whether the text known so far fills the cache: then a segment will be compressed."""
        return session.cached + len(session.unread) >= session.engine.geometry.capacity


class Carry:
    """The window moves along: every token sees the W or more before it, nothing is read twice.

    While t <= C the cache holds all of the text; from then on the S sinks, G pairs that the
    retention scorer kept and a residual of W < r <= W + N tokens.
    """

    def is_due(self, session: Session) -> bool:
        return self.room(session) == 0

    def room(self, session: Session) -> int:
        geometry = session.engine.geometry
        sinks_missing = max(0, geometry.sink_length - session.cached)
        most = geometry.segment_length + geometry.window_length
        return sinks_missing + most - len(session.residual)

    def compress(self, session: Session) -> None:
        """The engine fills the recall slots and moves the window; nothing moves while all fits.

        Even then it folds and scores the tokens that leave the window, where the state has room for
        that.
        """
        geometry, length = session.engine.geometry, session.state.length
        left = geometry.sink_length + geometry.window_length
        before = [int(used) for used in length]
        after = [
            left + min(geometry.slots_of(layer), used - left) for layer, used in enumerate(before)
        ]
        notes = session.engine.reads_memory or session.state.keeps_scores
        if notes or after != before:
            session.engine.compress_memory(session.state)
        del session.residual[: geometry.segment_length]
        length[:] = after


POLICY_OF: dict[str, Policy] = {"reencode": Reencode(), "carry": Carry()}
