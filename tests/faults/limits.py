"""Places where there is no room: a full disk, a folder that can't be written, too little memory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def disk(folder: Path, *, kilobytes: int = 1024) -> Iterator[Path]:
    """A file system of this size, gone afterwards; skips where mounting isn't allowed."""
    folder.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, kilobytes: int) -> None:
    """Gives a `disk` another size."""
    _mount("-o", f"remount,size={kilobytes}k", str(folder))


def forbid_writing(folder: Path) -> None:
    """Makes a `disk` read-only, for root as well."""
    _mount("-o", "remount,ro", str(folder))


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no program `mount`")
    if done.returncode:
        pytest.skip(f"mounting isn't allowed here: {done.stderr.strip()}")
