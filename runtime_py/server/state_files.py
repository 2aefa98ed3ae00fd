"""Saved states on disk: a folder of session files that outlives the server.

A file's name is its key, `LENGTH-DIGEST.session`: how many tokens its state has read, and a hash of
them (`states.digests`). The hash stands in the file too, so that a file of another name isn't
believed. The folder belongs to one model and geometry, and to one server at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections import OrderedDict
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import held_alone, remove
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session

Key = tuple[int, str]
"""Tokens read, and the hexadecimal hash of their ids."""

_TOKENS = "edgeinfinite.tokens"
"""The hash's name in a file's metadata."""

_NAME = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{64})\.session")


class StateFolder:
    """Session files in a folder, the least recently used of them removed for new ones.

    Args:
        engine: whose states these are.
        folder: made if it isn't there; one sub-folder for each model and geometry in it.
        most_bytes: of all files.

    Attributes:
        path: the sub-folder of this model and geometry.

    Raises:
        EdgeInfiniteError: another server uses the folder.
        OSError: it can't be made or read.
    """

    def __init__(self, engine: Engine, folder: Path, most_bytes: int) -> None:
        self._engine = engine
        self._most_bytes = most_bytes
        owner = f"{engine.fingerprint} {msgspec.json.encode(engine.geometry).decode()}"
        self.path = folder / hashlib.sha256(owner.encode()).hexdigest()[:16]
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._held = ExitStack()
        self._held.enter_context(held_alone(self.path / "states"))
        self._lock = threading.Lock()
        self._sizes: OrderedDict[Key, int] = OrderedDict()  # least recently used first
        self._index()

    def _index(self) -> None:
        found = []
        for path in self.path.iterdir():
            name = _NAME.fullmatch(path.name)
            if name:
                try:
                    status = path.stat()
                except OSError:  # a link to nothing
                    continue
                if not stat.S_ISREG(status.st_mode):
                    continue
                found.append((status.st_mtime_ns, (int(name[1]), name[2]), status.st_size))
            elif path.name.startswith(".") and path.name.endswith(".tmp.session"):
                remove(path)  # of a server that was killed while it wrote
        for _, key, size in sorted(found):
            self._sizes[key] = size
        self._shrink()

    def keys(self) -> list[Key]:
        with self._lock:
            return list(self._sizes)

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        with self._lock:
            return sum(self._sizes.values())

    def load(self, key: Key) -> Session | None:
        """The session; None if it isn't there or can't be read any more."""
        path = self._path(key)
        try:
            session, metadata = load_session(self._engine, path)
            of_these = metadata.get(_TOKENS) == key[1] and session.tokens_read == key[0]
            if not of_these or session.unread:
                raise EdgeInfiniteError(f"{path} doesn't hold what its name says")
        except (EdgeInfiniteError, OSError):
            self._forget(key)
            return None
        with self._lock:
            if key in self._sizes:
                self._sizes.move_to_end(key)
        with suppress(OSError):  # the order of use, for the next start
            os.utime(path)
        return session

    def save(self, key: Key, session: Session) -> None:
        """Writes a session, whole or not at all.

        Raises:
            EdgeInfiniteError: it can't be written.
        """
        path = self._path(key)
        save_session(session, path, extra={_TOKENS: key[1]})
        with self._lock:
            self._sizes[key] = path.stat().st_size
            self._sizes.move_to_end(key)
            self._shrink()

    def close(self) -> None:
        """Lets another server have the folder."""
        self._held.close()

    def _forget(self, key: Key) -> None:
        with self._lock:
            self._sizes.pop(key, None)
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def _shrink(self) -> None:
        total = sum(self._sizes.values())
        while total > self._most_bytes and self._sizes:
            key, size = self._sizes.popitem(last=False)
            total -= size
            with suppress(OSError):
                self._path(key).unlink(missing_ok=True)

    def _path(self, key: Key) -> Path:
        return self.path / f"{key[0]}-{key[1]}.session"
