"""A private file in place of memory: it grows at its end, and nothing of it stays behind."""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import sys
import tempfile
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError

_STEP = 1 << 20
_POPULATE_READ = 22
"""Linux 5.14's MADV_POPULATE_READ, which Python doesn't name: maps pages in one call."""


def default_folder() -> Path:
    """$TMPDIR, else /var/tmp, which unlike /tmp is a disk on every Linux, else the system's own."""
    usual = Path("/var/tmp")
    if "TMPDIR" not in os.environ and os.access(usual, os.W_OK):
        return usual
    return Path(tempfile.gettempdir())


class SpillFile:
    """Bytes in a file without a name, mapped into memory.

    The file is deleted as soon as it is open, where the system can (on Windows: when it is
    closed), so neither an error nor a killed process leaves it behind. Its blocks are allocated
    before they are written: a full disk is an error of `reserve`, and not the signal (SIGBUS) that
    a write into a mapped hole would be.

    Args:
        folder: where to create it; best on a disk, since a tmpfs is memory itself.
        what: what errors call it.
        advice: of errors, what to do other than freeing space.

    Raises:
        EdgeInfiniteError: the folder can't be written.
    """

    def __init__(
        self,
        folder: Path,
        what: str = "KV cache's file",
        advice: str = "give another folder with --offload-folder",
    ) -> None:
        self._folder, self._what, self._advice = folder, what, advice
        try:
            self._file = tempfile.TemporaryFile(  # noqa: SIM115  (closed by `close`)
                dir=folder, prefix=".edgeinfinite-", buffering=0
            )
        except OSError as error:
            raise self._failed(error, "can't be created") from error
        self.size = 0
        self.mapped: mmap.mmap | None = None

    def reserve(self, size: int) -> None:
        """Makes the file at least `size` bytes long; `mapped` is a new map then.

        Raises:
            EdgeInfiniteError: the disk is full, or has no room for a file of that size.
        """
        if size <= self.size:
            return
        size = -(-size // _STEP) * _STEP
        try:
            self._allocate(size)
            mapped = mmap.mmap(self._file.fileno(), size)
        except (OSError, ValueError) as error:
            missing = f"has no room for {(size - self.size) / 1e6:,.0f} MB more"
            raise self._failed(error, missing) from error
        # The old map is closed when the last tensor that uses it is gone.
        self.mapped, self.size = mapped, size

    def shrink(self, size: int) -> None:
        """Gives back what the file has beyond `size` bytes; `mapped` is a new map then.

        Nothing may use the old map's end any more.
        """
        size = -(-size // _STEP) * _STEP
        if size < self.size:
            self._file.truncate(size)
            self.mapped = mmap.mmap(self._file.fileno(), size) if size else None
            self.size = size

    def map_in(self, size: int) -> None:
        """Reads the first `size` bytes and maps them, in a few calls in place of page faults.

        May run in another thread than the file's use, as `release` may.
        """
        if size and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, size, os.POSIX_FADV_WILLNEED)
        _advise(self.mapped, size, _POPULATE_READ)

    def release(self) -> None:
        """Takes the pages out of this process's memory. They stay in the file, and as long as
        memory isn't short, in the system's cache of it.
        """
        _advise(self.mapped, self.size, getattr(mmap, "MADV_DONTNEED", None))

    def close(self) -> None:
        """Gives the disk's space back, once no tensor uses it any more."""
        self.mapped = None
        self._file.close()

    def _allocate(self, size: int) -> None:
        descriptor = self._file.fileno()
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, self.size, size - self.size)
            return
        zeros = bytes(_STEP)  # macOS, Windows: writing is the only way to be sure of the blocks
        self._file.seek(self.size)
        for _ in range(self.size, size, _STEP):
            if self._file.write(zeros) != _STEP:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _failed(self, error: Exception, problem: str) -> EdgeInfiniteError:
        reason = getattr(error, "strerror", None) or str(error)
        return EdgeInfiniteError(
            f"the {self._what} in {self._folder} {problem} ({reason}); free space there, or "
            f"{self._advice}"
        )


def _advise(mapped: mmap.mmap | None, size: int, advice: int | None) -> None:
    """madvise without Python's lock, which mmap's own method holds; Linux only.

    What it refuses (POPULATE_READ before Linux 5.14) is refused silently: it's only advice.
    """
    if mapped is None or not size or advice is None or sys.platform != "linux":
        return
    exported = ctypes.c_char.from_buffer(mapped)  # while it lives, the map does
    _libc().madvise(ctypes.addressof(exported), size, advice)


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc
