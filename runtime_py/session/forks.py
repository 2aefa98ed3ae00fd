"""Forks share a state's arrays until one of them writes: copy on write."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from edgeinfinite.runtime_py.session.state import State

if TYPE_CHECKING:
    from edgeinfinite.runtime_py.session.session import Session

_lock = threading.Lock()
_sharers: WeakKeyDictionary[State, WeakSet[Session]] = WeakKeyDictionary()


def share(state: State, *sessions: Session) -> None:
    """Notes that these sessions hold one state. A session that is dropped leaves by itself."""
    with _lock:
        _sharers.setdefault(state, WeakSet()).update(sessions)


def part_from_forks(session: Session) -> None:
    """Makes the session the only one that holds its state. Call it before a write.

    The session keeps its arrays, which an engine may have bound, and the others get one copy
    together: of every cache the slots in use, so that memory is taken for these only.
    """
    with _lock:
        sharers = _sharers.pop(session.state, None)
        others = WeakSet(sharers or ()) - {session}
        if others:
            copied = session.state.copy()
            for other in others:
                other.state = copied
            if len(others) > 1:
                _sharers[copied] = others


def leave(session: Session) -> None:
    """The session gives its state up: what the others do with it no longer concerns it."""
    with _lock:
        sharers = _sharers.get(session.state)
        if sharers is not None:
            sharers.discard(session)
