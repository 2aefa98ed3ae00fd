"""Saved states: the longest one that a prompt begins with is continued.

A state can't be rewound, so it can be continued by a text that begins with exactly the tokens that
it has read. States are kept by the number of these tokens and a SHA-256 of them; the tokens
themselves aren't kept. What is kept is never written to again: requests work on copies.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.server.state_files import Key, StateFolder
from edgeinfinite.runtime_py.session.forks import part_from_forks
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.token_array import TokenIds, token_array

_LOG = logging.getLogger(__name__)

_MOST_UNWRITTEN = 8
"""States that may wait to be written to disk; the oldest is left out when another one comes."""


def digests(tokens: TokenIds, lengths: Iterable[int]) -> dict[int, Key]:
    """The keys of a text's beginnings.

    Args:
        tokens: token ids.
        lengths: of the beginnings, in tokens, each at most the number of tokens.
    """
    content = token_array(tokens).astype("<i8", copy=False).tobytes()
    digest, done, keys = hashlib.sha256(), 0, {}
    for length in sorted(set(lengths)):
        digest.update(content[8 * done : 8 * length])
        done = length
        keys[length] = length, digest.copy().hexdigest()
    return keys


@dataclass(frozen=True)
class _Saved:
    session: Session
    nbytes: int


class SavedStates:
    """Saved states in memory, and on disk where there is a folder; for any thread.

    Args:
        engine: of all sessions.
        most_bytes: of the states in memory; the least recently used go first.
        folder: states on disk; None for none.
    """

    def __init__(self, engine: Engine, most_bytes: int, folder: StateFolder | None = None) -> None:
        self.engine = engine
        self._most_bytes = most_bytes
        self._folder = folder
        self._lock = threading.Lock()
        self._saved: OrderedDict[Key, _Saved] = OrderedDict()  # least recently used first
        self._unwritten: OrderedDict[Key, Session] = OrderedDict()
        self._work = threading.Condition(self._lock)
        self._closed = False
        self.write_errors = 0
        self._writer = threading.Thread(target=self._write, name="states", daemon=True)
        if folder is not None:
            self._writer.start()

    def continued(self, tokens: TokenIds) -> Session:
        """A session that has read the longest beginning of a text that is saved.

        It has at least one token of the text still to read; with nothing saved it has all.
        """
        lengths = {length for length, _ in self._keys() if length < len(tokens)}
        for _, key in sorted(digests(tokens, lengths).items(), reverse=True):
            session = self._in_memory(key) or self._on_disk(key)
            if session is not None:
                return session
        return Session(self.engine)

    def keep(self, tokens: TokenIds, session: Session, *, on_disk: bool) -> None:
        """Keeps a copy of a session.

        Args:
            tokens: all that the session has read, and perhaps more.
            session: between two calls of `append`, or in its `progress`.
            on_disk: whether to write it to the folder too.
        """
        read = session.tokens_read
        if read < 1:
            return
        key = digests(tokens, [read])[read]
        with self._lock:
            if key in self._saved:
                self._saved.move_to_end(key)
                saved = self._saved[key].session
            else:
                saved = _copy(session)
                saved.drop_unread()
                self._hold(key, saved)
            if on_disk and self._folder is not None:
                self._unwritten[key] = saved
                if len(self._unwritten) > _MOST_UNWRITTEN:
                    self._unwritten.popitem(last=False)
                self._work.notify()

    def done(self, session: Session) -> None:
        """Nothing to do: what is kept are copies."""

    def figures(self) -> dict[str, int]:
        """How many states there are, and their bytes."""
        with self._lock:
            nbytes = sum(saved.nbytes for saved in self._saved.values())
            memory = {"states": len(self._saved), "bytes": nbytes}
        files = (
            {"files": 0, "file_bytes": 0}
            if self._folder is None
            else {"files": len(self._folder.keys()), "file_bytes": self._folder.nbytes}
        )
        return memory | files

    def flush(self, *, seconds: float) -> None:
        """Waits until the folder has what was to be written."""
        with self._lock:
            self._work.wait_for(lambda: not self._unwritten, timeout=seconds)

    def close(self) -> None:
        """Writes what waits for it, and gives the folder free."""
        with self._lock:
            self._closed = True
            self._work.notify_all()
        if self._folder is not None:
            self._writer.join()
            self._folder.close()

    def _keys(self) -> list[Key]:
        with self._lock:
            keys = list(self._saved)
        return keys if self._folder is None else keys + self._folder.keys()

    def _in_memory(self, key: Key) -> Session | None:
        with self._lock:
            saved = self._saved.get(key)
            if saved is None:
                return None
            self._saved.move_to_end(key)
            return _copy(saved.session)

    def _on_disk(self, key: Key) -> Session | None:
        session = None if self._folder is None else self._folder.load(key)
        if session is not None:
            with self._lock:
                self._hold(key, _copy(session))
        return session

    def _hold(self, key: Key, session: Session) -> None:
        saved = _Saved(session, _bytes(session))
        if saved.nbytes > self._most_bytes:
            return
        self._saved[key] = saved
        total = sum(saved.nbytes for saved in self._saved.values())
        while total > self._most_bytes:
            total -= self._saved.popitem(last=False)[1].nbytes

    def _write(self) -> None:
        """The writer's thread. A state stays in `_unwritten` until its file is whole."""
        assert self._folder is not None
        told = False
        while True:
            with self._lock:
                self._work.wait_for(lambda: self._unwritten or self._closed)
                if not self._unwritten:
                    return
                key, session = next(iter(self._unwritten.items()))
            try:
                if key not in self._folder.keys():  # noqa: SIM118  (a list)
                    self._folder.save(key, session)
                    told = False
            except (EdgeInfiniteError, OSError) as error:  # a full disk: the server goes on without
                self.write_errors += 1
                if not told:  # once until there is room again
                    _LOG.warning("note: a state isn't kept on disk: %s", error)
                    told = True
            with self._lock:
                if self._unwritten.get(key) is session:
                    del self._unwritten[key]
                self._work.notify_all()


def _copy(session: Session) -> Session:
    """A fork with arrays of its own. The session keeps its arrays: a running one is bound to an
    engine, and a saved one may be on its way to the disk.
    """
    fork = session.fork()
    part_from_forks(session)
    return fork


def _bytes(session: Session) -> int:
    return session.state.bytes_in_memory + 8 * len(session.residual)
