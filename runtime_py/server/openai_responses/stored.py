"""Stored responses: what `previous_response_id` goes on from.

A response is kept as its object, its conversation, and the tokens that the model has read. Its
state is one of the saved states (`states.SavedStates`), found by these tokens; where it had to make
room, the tokens are read again, so an id is good for as long as its response is.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import replacing

_LOG = logging.getLogger(__name__)

_NAME = re.compile(r"resp_[0-9a-f]{48}")
_SUFFIX = ".response"
_DAY = 86_400.0


class Stored(msgspec.Struct, frozen=True):
    """A stored response.

    Args:
        id: `resp_` and a number that nobody can guess.
        model: fingerprint of the model that answered.
        response: as its client got it.
        items: the input's, as `input_items` lists them.
        setting: what the conversation stands behind: instructions and tools.
        messages: the conversation without the instructions, the answer included.
        tokens: what the model has read, 4 bytes each, compressed.
        salt: with the key of its client it makes `owner`.
        owner: whose it is.
    """

    id: str
    model: str
    response: dict[str, Any]
    items: list[dict[str, Any]]
    setting: dict[str, Any]
    messages: list[dict[str, Any]]
    tokens: bytes
    salt: bytes = b""
    owner: bytes = b""

    @property
    def read(self) -> list[int]:
        """The tokens."""
        return array("i", zlib.decompress(self.tokens)).tolist()


def packed(tokens: tuple[int, ...]) -> bytes:
    """Token ids as `Stored.tokens` has them."""
    return zlib.compress(array("i", tokens).tobytes(), 1)


def new_number() -> str:
    """The part of a response's id that nobody can guess."""
    return secrets.token_hex(24)


class ResponseStore:
    """Responses by id; for any thread.

    A client gets only what was stored by a client with the same key, by the same model, and isn't
    older than `most_days`. What there is no room for goes, the least recently used first.

    Args:
        model: fingerprint.
        key: the server's API key; None for none.
        most_bytes: of all responses.
        most_days: their age.
        folder: outlives the server; None keeps them in memory.
        now: seconds since 1970; None for those that don't jump when the clock is set.
    """

    def __init__(
        self,
        model: str,
        key: str | None,
        most_bytes: int,
        most_days: float,
        folder: Path | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._model = model
        self._key = (key or "").strip().encode()
        self._most_bytes = most_bytes
        self._most_seconds = most_days * _DAY
        self._folder = folder
        self._now = now or _steady()
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # least recently used first
        self.write_errors = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._index(folder)

    def put(self, stored: Stored) -> None:
        """Keeps a response, if there is room for it at all."""
        salt = secrets.token_bytes(16)
        stored = msgspec.structs.replace(stored, salt=salt, owner=self._owner(salt))
        content = msgspec.msgpack.encode(stored)
        if len(content) > self._most_bytes:
            return
        held: bytes | None = content
        if self._folder is not None:
            try:
                with replacing(self._path(stored.id), private=True) as unfinished:
                    unfinished.write_bytes(content)
                held = None
            except (EdgeInfiniteError, OSError) as error:  # a full disk: memory will do
                self.write_errors += 1
                _LOG.warning("note: a response isn't kept on disk: %s", error)
        with self._lock:
            self._kept[stored.id] = _Kept(len(content), self._now(), held)
            self._shrink()

    def get(self, name: str) -> Stored | None:
        """The response; None where it isn't there any more, was never, or is another's."""
        with self._lock:
            self._shrink()
            kept = self._kept.get(name)
            if kept is None:
                return None
            self._kept.move_to_end(name)
        try:
            content = kept.content or self._path(name).read_bytes()
            stored = msgspec.msgpack.decode(content, type=Stored)
        except (OSError, msgspec.MsgspecError):
            self.delete(name)
            return None
        own = hmac.compare_digest(stored.owner, self._owner(stored.salt))
        if not own or stored.id != name or stored.model != self._model:
            return None
        return stored

    def delete(self, name: str) -> None:
        """Forgets a response."""
        with self._lock:
            self._drop(name)

    def figures(self) -> dict[str, int]:
        """How many there are, and their bytes."""
        with self._lock:
            return {"responses": len(self._kept), "bytes": self._bytes()}

    def _owner(self, salt: bytes) -> bytes:
        return hashlib.blake2b(self._key, salt=salt, person=b"edgeinfinite-id").digest()

    def _index(self, folder: Path) -> None:
        found = []
        for path in folder.glob(f"resp_*{_SUFFIX}"):
            with suppress(OSError):
                status = path.lstat()
                if _NAME.fullmatch(path.stem) and path.is_file() and not path.is_symlink():
                    found.append((status.st_mtime, path.stem, status.st_size))
        now = self._now()
        for created, name, size in sorted(found):  # a clock may have been ahead
            self._kept[name] = _Kept(size, min(created, now), None)
        self._shrink()

    def _bytes(self) -> int:
        return sum(kept.size for kept in self._kept.values())

    def _shrink(self) -> None:
        """Drops what is too old, and what there is no room for."""
        oldest = self._now() - self._most_seconds
        for name in [name for name, kept in self._kept.items() if kept.created < oldest]:
            self._drop(name)
        total = self._bytes()
        while total > self._most_bytes:
            name, kept = next(iter(self._kept.items()))
            total -= kept.size
            self._drop(name)

    def _drop(self, name: str) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None and kept.content is None:
            with suppress(OSError):
                self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        assert self._folder is not None and _NAME.fullmatch(name)
        return self._folder / f"{name}{_SUFFIX}"


def _steady() -> Callable[[], float]:
    """Seconds since 1970 by a clock that nobody sets: one that jumps ahead would expire all."""

    def passed() -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):  # goes on while the machine sleeps
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    began = time.time() - passed()
    return lambda: began + passed()


class _Kept(msgspec.Struct, frozen=True):
    """Where a response is: in memory, or (without `content`) on disk."""

    size: int
    created: float
    content: bytes | None
