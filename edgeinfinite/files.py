"""Reading text files, and writing files atomically."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError

# Standard output may be a regular file by redirection; replacing it would break the shell's handle.
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/")


def read_text_file(path: Path) -> str:
    """A file's text, without a byte order mark.

    Raises:
        EdgeInfiniteError: it isn't UTF-8.
        OSError: the file can't be read; the message names it.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise EdgeInfiniteError(
            f"{path} isn't UTF-8 text (byte {error.object[error.start]:#04x} at {error.start}); "
            "convert it to UTF-8 first"
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Writes a UTF-8 file atomically; see `replacing`.

    Raises:
        EdgeInfiniteError, OSError: it can't be written; an old file isn't changed.
    """
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yields the name of a new file to write, which then replaces `path`.

    A regular file is replaced when the block ends without an error and the new one is on disk. For
    a symbolic link, the link's target is replaced. Anything else, such as `/dev/stdout` or a FIFO,
    is written into and not replaced.

    Args:
        path: the file; the new one's name ends in the same suffix.
        private: only the owner may read it. Otherwise a new file follows the umask and an existing
            file keeps its permissions.

    Raises:
        EdgeInfiniteError: the path is a folder.
        OSError: it can't be written; an old file isn't changed.
    """
    if path.is_dir():
        raise EdgeInfiniteError(f"{path} is a folder; give the name of a file")
    if not is_replaceable(path):
        with tempfile.TemporaryDirectory() as folder:
            unfinished = Path(folder) / (path.name or "output")
            yield unfinished
            _write_through(path, unfinished.read_bytes())
        return
    target = Path(os.path.realpath(path))
    with locked_folder(target.parent) as folder_descriptor:
        _remove_leftovers(target)
        # A folder of its own: some writers make a temporary file beside theirs, which would stay
        # for ever if they were killed.
        own = target.with_name(f".{target.stem}.{os.getpid()}.tmp{target.suffix}")
        own.mkdir(mode=0o700)
        unfinished = own / target.name
        try:
            mode = _create(unfinished, target, private=private)
            yield unfinished  # some writers replace it with their own file
            unfinished.chmod(mode)
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            unfinished.replace(target)
            if folder_descriptor is not None:
                os.fsync(folder_descriptor)
        finally:
            shutil.rmtree(own, ignore_errors=True)


def save_figure(figure: Any, path: Path) -> None:
    """Writes a matplotlib figure atomically; see `replacing`.

    Args:
        figure: a `matplotlib.figure.Figure`.
        path: its suffix decides the format; PNG without one.

    Raises:
        EdgeInfiniteError: matplotlib doesn't know the format.
    """
    kind = path.suffix[1:].lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise EdgeInfiniteError(f"{path}: a plot can't be a .{kind}; one of {', '.join(known)}")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=150, format=kind)


def is_replaceable(path: Path) -> bool:
    """Whether the path is a regular file, or nothing yet; not a device, a FIFO or a folder."""
    hop = path.absolute()
    for _ in range(40):  # Linux follows at most 40 links
        if str(hop).startswith(_OPEN_ALREADY):
            return False
        if not hop.is_symlink():
            break
        hop = hop.parent / hop.readlink()
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


@contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """Holds a lock on a file, so that no other process with the same lock works with it.

    A hidden file beside it is locked while the block runs. The system releases the lock of a killed
    process; the next one reuses the hidden file and removes it.

    Raises:
        EdgeInfiniteError: another process holds the file.
        OSError: the folder can't be written.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise EdgeInfiniteError(
                f"{path} is open in another process; end that one, or give another name"
            ) from error
        except OSError:  # some network file systems have no locks
            break
        # The last holder may have removed the file before we got its lock.
        if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
            break
        os.close(descriptor)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def check_writable(path: Path | None, *, again: bool = False) -> None:
    """Checks before long work whether its result can be written; None means no file.

    Args:
        path: the file.
        again: the file is also read, or written several times.

    Raises:
        EdgeInfiniteError: the folder doesn't exist or can't be written, the path is a folder or,
            with `again`, isn't a regular file.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise EdgeInfiniteError(f"{path}: there is no folder {path.parent}; create it first")
    target = Path(os.path.realpath(path))
    if path.is_symlink() and not path.exists() and not target.parent.is_dir():
        raise EdgeInfiniteError(f"{path} leads to {target}, whose folder isn't there; remove it")
    if path.is_dir():
        raise EdgeInfiniteError(f"{path} is a folder; give the name of a file")
    if again and not is_replaceable(path):
        raise EdgeInfiniteError(
            f"{path} is not a regular file, and this file is read again; give another name"
        )
    if is_replaceable(path):
        check_folder_writable(Path(os.path.realpath(path)).parent)


def check_folder_writable(folder: Path) -> None:
    """Checks before long work whether a file can be made in a folder.

    Args:
        folder: if it doesn't exist, the nearest one above it that does.

    Raises:
        EdgeInfiniteError: it can't, because of permissions or a read-only file system.
    """
    found = next(parent for parent in (folder, *folder.absolute().parents) if parent.is_dir())
    if not os.access(found, os.W_OK | os.X_OK):
        raise EdgeInfiniteError(f"nothing can be written in {found}; give another folder")


def _create(unfinished: Path, target: Path, *, private: bool) -> int:
    """Creates the empty file and returns its final permissions."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = os.open(unfinished, flags, 0o600 if private else 0o666)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
    if not private:
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(target.stat().st_mode)
    return mode


@contextmanager
def locked_folder(folder: Path) -> Iterator[int | None]:
    """Locks a folder against other processes that use this function, where the system can.

    The system releases the lock of a killed process, also in another container.

    Args:
        folder: the folder.

    Yields:
        The folder's descriptor; None where folders have none, as on Windows.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, PermissionError):  # Windows, or a folder that can't be listed
        yield None
        return
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_leftovers(target: Path) -> None:
    start, end = f".{target.stem}.", f".tmp{target.suffix}"
    for file in target.parent.iterdir():
        number = file.name[len(start) : -len(end)]
        if file.name.startswith(start) and file.name.endswith(end) and number.isdecimal():
            remove(file)


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write_through(path: Path, content: bytes) -> None:
    descriptor = _open_already(path)
    if descriptor is None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _open_already(path: Path) -> int | None:
    """A copy of standard output or error where the path is one: a file that the shell opened is
    written where the shell's next program goes on, which a second handle of it wouldn't move.
    """
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), path.stat()):
                return os.dup(number)
    return None
