"""Exact reading between two requests: a KV cache can be cut back to a beginning, but not copied.

So a cache waits for a request whose prompt begins like the text that it holds, and is cut back to
where they part. One request at a time has it. All conversations of a chat template begin alike;
so that one doesn't take another's cache for that, the prompt must share at least half of the text.
"""

from __future__ import annotations

import threading
from itertools import takewhile

from edgeinfinite.runtime_py.engines.mom_session import MomEngine, MomSession
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.token_array import TokenIds


class ExactStates:
    """Sessions of exact reading that wait for their text to go on; for any thread. See `States`.

    Args:
        engine: of all sessions.
        most: sessions that may wait; the least recently used is closed for another one.
    """

    def __init__(self, engine: MomEngine, most: int) -> None:
        self.engine = engine
        self.write_errors = 0
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[MomSession] = []  # least recently used first
        self._closed = False

    def continued(self, tokens: TokenIds) -> Session:
        """A session that has read the longest beginning of the text that a waiting one offers.

        It has at least one token of the text still to read; if none offers any, it has all.
        """
        with self._lock:
            found = [(_usable(session, tokens), session) for session in self._waiting]
            common, session = max(found, key=lambda pair: pair[0], default=(0, None))
            if session is None or not common:
                return MomSession(self.engine)
            self._waiting.remove(session)
        session.cut(common)
        return session

    def keep(self, tokens: TokenIds, session: Session, *, on_disk: bool) -> None:
        """Nothing to do: `done` keeps the session itself."""

    def done(self, session: Session) -> None:
        """Takes a session back whose request has ended."""
        assert isinstance(session, MomSession)
        session.drop_unread()
        with self._lock:
            if session.tokens_read:
                self._waiting.append(session)
            kept = 0 if self._closed else self._most
            surplus = self._waiting[: max(0, len(self._waiting) - kept)]
            del self._waiting[: len(surplus)]
        for one in surplus:
            one.close()
        if not session.tokens_read:  # its prompt was cancelled or refused
            session.close()

    def figures(self) -> dict[str, int]:
        """How many waiting sessions there are, and the bytes of their caches on disk."""
        with self._lock:
            nbytes = sum(session.state_bytes for session in self._waiting)
            return {"states": 0, "bytes": 0, "files": len(self._waiting), "file_bytes": nbytes}

    def close(self) -> None:
        """Gives the disk's space back."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, []
        for session in waiting:
            session.close()


def _usable(session: MomSession, tokens: TokenIds) -> int:
    """How many of the session's tokens the text begins with, if it may be cut back to them."""
    pairs = zip(session.residual, tokens[:-1], strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    may_cut = session.can_cut and 2 * common >= session.tokens_read
    return common if common == session.tokens_read or may_cut else 0
