"""Writes an artifact beside its place, and renames it when it is complete."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from edgeinfinite.artifact.manifest import MANIFEST_FILE
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_folder_writable, held_alone, locked_folder

_PARTIAL, _OLD, _LOCK = ".partial", ".old", ".lock"
_TAG = re.compile("[0-9a-f]{16}")


def check_output(output: Path) -> None:
    """An existing folder is replaced only if it is empty or an artifact.

    Raises:
        EdgeInfiniteError: `output` is a file, a folder with other content, a link to nothing, or
            lies where nothing can be written.
    """
    check_folder_writable(output.absolute().parent)
    if not output.exists():
        if output.is_symlink():
            raise EdgeInfiniteError(
                f"{output} is a link to {output.readlink()}, which isn't there; make that folder, "
                "remove the link, or give another folder"
            )
        return
    if not output.is_dir():
        raise EdgeInfiniteError(f"{output} is a file; give a folder for the artifact")
    if any(output.iterdir()) and not (output / MANIFEST_FILE).is_file():
        raise EdgeInfiniteError(
            f"{output} holds something that is not an artifact; give an empty or a new folder"
        )


@contextmanager
def unfinished(output: Path) -> Iterator[Path]:
    """A folder beside `output` that replaces it at the end, or is deleted on any exception.

    First it deletes what killed exports to the same place have left behind. A running export holds
    a lock, which the system releases when the process is killed. A process number in the name
    wouldn't do: it means nothing in another container.
    """
    made = [parent for parent in output.parents if not parent.exists()]
    tag = secrets.token_hex(8)
    folder = output.with_name(f".{output.name}.{tag}{_PARTIAL}")
    old = output.with_name(f".{output.name}.{tag}{_OLD}")
    with ExitStack() as locks:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with locked_folder(output.parent):  # nobody may clear a folder that isn't locked yet
                _clear_leftovers(output)
                locks.enter_context(held_alone(_held(output, tag)))
                folder.mkdir()
            yield folder
            check_output(output)
            with locked_folder(output.parent):
                if output.exists():
                    output.rename(old)
                folder.rename(output)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            if old.exists() and not output.exists():
                old.rename(output)
            locks.close()  # its file lies in a folder that may have been made for this export
            for parent in made:
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()
            raise


def _held(output: Path, tag: str) -> Path:
    """The path that stands for one export; its lock is held while that export runs."""
    return output.with_name(f"{output.name}.{tag}")


def _clear_leftovers(output: Path) -> None:
    """Deletes folders of dead exports and restores an artifact that one was about to replace."""
    for path in list(output.parent.iterdir()):
        tag = path.name.removeprefix(f".{output.name}.").removesuffix(path.suffix)
        if path.suffix not in (_PARTIAL, _OLD, _LOCK) or not _TAG.fullmatch(tag):
            continue
        with suppress(EdgeInfiniteError), held_alone(_held(output, tag)):
            if path.suffix == _LOCK:
                continue  # removed behind us
            if path.suffix == _OLD and not output.exists():
                path.rename(output)
            else:
                shutil.rmtree(path, ignore_errors=True)
