"""Chooses test documents: never those that the scorer or the gate was trained on."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.trained_file import read_metadata
from edgeinfinite.training.texts import find_documents


def unseen_documents(paths: Sequence[Path], trained_files: Sequence[str | None]) -> list[Path]:
    """The documents that no trained part names as training data.

    Args:
        paths: files or folders.
        trained_files: scorer and gates; values that aren't files are ignored.

    Raises:
        EdgeInfiniteError: there is no document, or none that training hasn't seen.
    """
    seen: set[str] = set()
    for name in trained_files:
        if name is not None and Path(name).is_file():
            seen |= set(json.loads(read_metadata(Path(name)).get("trained_on", "[]")))
    documents = find_documents(paths)
    unseen = [path for path in documents if path.name not in seen]
    if not unseen:
        raise EdgeInfiniteError(
            f"training has seen all {len(documents)} documents; give others to --data"
        )
    if left_out := len(documents) - len(unseen):
        print(f"note: {left_out} documents left out, training has seen them", file=sys.stderr)
    return unseen
