"""A private file in place of memory: it grows at its end, and nothing of it stays behind."""

from __future__ import annotations

import errno
import mmap
import os
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

    Raises:
        EdgeInfiniteError: the folder can't be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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

    def prefetch(self, size: int) -> None:
        """Asks the system to read the first `size` bytes ahead, in the background."""
        if size and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, size, os.POSIX_FADV_WILLNEED)

    def map_in(self, size: int) -> None:
        """Maps the first `size` bytes in one call, where the system can; saves page faults."""
        if size and self.mapped is not None and _populates():
            self.mapped.madvise(_POPULATE_READ, 0, size)

    def release(self) -> None:
        """Takes the pages out of this process's memory. They stay in the file, and as long as
        memory isn't short, in the system's cache of it.
        """
        if self.mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapped.madvise(mmap.MADV_DONTNEED)

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

    def _failed(self, error: Exception, what: str) -> EdgeInfiniteError:
        reason = getattr(error, "strerror", None) or str(error)
        return EdgeInfiniteError(
            f"the KV cache's file in {self._folder} {what} ({reason}); free space there, or give "
            "another folder with --offload-folder"
        )


def _populates() -> bool:
    global _known
    if _known is None:
        try:
            with mmap.mmap(-1, mmap.PAGESIZE) as probe:
                probe.madvise(_POPULATE_READ)
            _known = os.uname().sysname == "Linux"
        except (AttributeError, OSError, ValueError):
            _known = False
    return _known


_known: bool | None = None
