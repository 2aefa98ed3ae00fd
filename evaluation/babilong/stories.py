"""Finds the questions of bAbI's test files."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.training.babi import StoryQuestion, read_stories


def find_stories(folder: Path, task: str) -> Path:
    """The file with a task's test split, `..._qa1_..._test.txt` or `qa1_..._test.txt`.

    Raises:
        EdgeInfiniteError: there is no such file, or more than one.
    """
    if not folder.is_dir():
        raise EdgeInfiniteError(f"{folder} isn't a folder; give the one with bAbI's files")
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.name.endswith("_test.txt") and f"_{task}_" in f"_{path.name}"
    ]
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no such file"
        raise EdgeInfiniteError(f"{folder} needs one {task}_..._test.txt of bAbI, it has {names}")
    return found[0]


def read_questions(path: Path) -> list[StoryQuestion]:
    """Every question of a file, see `read_stories`."""
    return [question for story in read_stories(path) for question in story]
