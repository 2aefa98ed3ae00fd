"""Flips single bits in copies of an artifact and of a session file, and counts what is refused.

`python scripts/flip_bits.py ARTIFACT FILE.session` prints one line for each.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines import load_engine


def flipped(files: list[Path], count: int, read: Callable[[], object], dice: random.Random) -> int:
    """How many of `count` flips `read` refuses; a place is drawn from a file drawn before.

    Args:
        files: to be changed, one bit at a time, and put right again.
        count: how often.
        read: raises EdgeInfiniteError for what it refuses.
        dice: draws.
    """
    refused = 0
    for _ in tqdm(range(count), disable=None):
        path = dice.choice(files)
        place = dice.randrange(8 * path.stat().st_size)
        flip(path, place)
        try:
            read()
        except EdgeInfiniteError:
            refused += 1
        else:
            print(f"accepted: bit {place} of {path.name}", file=sys.stderr)
        flip(path, place)
    return refused


def flip(path: Path, place: int) -> None:
    """Flips one bit of a file."""
    with path.open("r+b") as file:
        file.seek(place // 8)
        byte = file.read(1)[0] ^ 1 << place % 8
        file.seek(place // 8)
        file.write(bytes([byte]))


def main() -> None:
    """Prints one line for the artifact and one for the session."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("session", type=Path)
    parser.add_argument("--artifact-flips", type=int, default=500)
    parser.add_argument("--session-flips", type=int, default=2000)
    args = parser.parse_args()
    dice = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(shutil.copytree(args.artifact, Path(folder) / "artifact"))
        session = Path(shutil.copy(args.session, folder))
        manifest = json.loads((artifact / "manifest.json").read_text())
        files = [artifact / name for name in ("manifest.json", *manifest["files"])]
        count = args.artifact_flips
        refused = flipped(files, count, lambda: load_engine(artifact), dice)
        print(f"artifact: {refused} of {count} flips refused, in {len(files)} files")
        count = args.session_flips
        refused = flipped([session], count, lambda: read_session_file(session), dice)
        print(f"session: {refused} of {count} flips refused")


if __name__ == "__main__":
    main()
