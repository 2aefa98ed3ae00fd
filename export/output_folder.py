"""Where an artifact is written: beside its place until it is whole (docs/architecture.md)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from edgeinfinite.artifact.manifest import MANIFEST_FILE
from edgeinfinite.errors import EdgeInfiniteError

_PARTIAL, _OLD = ".partial", ".old"


def check_output(output: Path) -> None:
    """An existing folder is replaced only if it is empty or an artifact.

    Raises:
        EdgeInfiniteError: there is something else.
    """
    if not output.exists():
        return
    if not output.is_dir():
        raise EdgeInfiniteError(f"{output} is a file; give a folder for the artifact")
    if any(output.iterdir()) and not (output / MANIFEST_FILE).is_file():
        raise EdgeInfiniteError(
            f"{output} holds something that is not an artifact; give an empty or a new folder"
        )


@contextmanager
def unfinished(output: Path) -> Iterator[Path]:
    """A folder beside `output` that takes its place at the end, or vanishes on any exception.

    What an export to the same place left behind that was killed outright is cleared away first.
    """
    made = [parent for parent in output.parents if not parent.exists()]
    _clear_leftovers(output)
    folder = output.with_name(f".{output.name}.{os.getpid()}{_PARTIAL}")
    old = output.with_name(f".{output.name}.{os.getpid()}{_OLD}")
    try:
        folder.mkdir(parents=True)
        yield folder
        check_output(output)
        if output.exists():
            output.rename(old)
        folder.rename(output)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if old.exists() and not output.exists():
            old.rename(output)
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def _clear_leftovers(output: Path) -> None:
    """Of processes that are no more; an artifact that was about to be replaced comes back."""
    if not output.parent.is_dir():
        return
    for path in output.parent.iterdir():
        number = path.name.removeprefix(f".{output.name}.").removesuffix(path.suffix)
        if path.suffix not in (_PARTIAL, _OLD) or not number.isdecimal():
            continue
        if psutil.pid_exists(int(number)):
            continue
        if path.suffix == _OLD and not output.exists():
            path.rename(output)
        else:
            shutil.rmtree(path, ignore_errors=True)
