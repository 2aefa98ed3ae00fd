"""Makes the corpus anew: `python tests/fuzz/make_corpus.py`. Files named `found-*` stay.

Whole files come from `seeds.py`. The others are whole files changed at random: one for each thing
that a reader has to say about them, and some that are read all the same.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import seeds
from fuzz.changes import changed
from fuzz.readers import CORPUS, READERS, TOKENIZER_FILES, refusal

TRIES = 200
MOST_REFUSED, MOST_READ = 25, 5
"""Changed files per reader, at most."""

LARGEST = 6000
"""Bytes of a changed file."""


def put(reader: str, name: str, data: bytes) -> str | None:
    """Reads a file and writes it where it belongs; the refusal if it isn't read."""
    line = refusal(READERS[reader], data)
    _write(CORPUS / reader / ("read" if line is None else "refused") / name, data)
    return line


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def changed_files(reader: str, whole: seeds.Files) -> None:
    """Writes changed files: no two with the same refusal but for its numbers and names."""
    dice = random.Random(reader)
    known: set[str] = set()
    read = 0
    for number in range(TRIES):
        name = dice.choice(sorted(whole))
        data = changed(reader, whole[name], dice)
        if len(data) > LARGEST or data in whole.values():
            continue
        try:
            line = refusal(READERS[reader], data)
        except Exception as error:  # a defect; the file is for whoever mends it
            path = Path(tempfile.gettempdir()) / f"{reader}-{number}{Path(name).suffix}"
            path.write_bytes(data)
            print(f"DEFECT {path}: {type(error).__name__}: {str(error)[:200]!r}")
            continue
        said = re.sub(r"'[^']*'|`[^`]*`|[0-9.]+|/\S+", "", line or "")
        if line is None:
            read += 1
        if said in known or len(known) == MOST_REFUSED or read > MOST_READ:
            continue
        if line is not None:
            known.add(said)
        put(reader, f"made-{number:03}{Path(name).suffix}", data)


def main() -> None:
    """Writes the corpus of the readers that are named, or of all."""
    wanted = sys.argv[1:] or list(READERS)
    with tempfile.TemporaryDirectory() as folder:
        whole = seeds.files(Path(folder))
    for old in CORPUS.glob("*/*/*"):
        if old.parts[-3] in wanted and not old.name.startswith("found-"):
            old.unlink()
    for kind in {"manifest", *TOKENIZER_FILES} & set(wanted):  # which other readers need
        for name, data in whole[kind].items():
            if name.startswith("artifact-"):
                _write(CORPUS / kind / "read" / name, data)
    for reader in READERS:
        if reader in wanted:
            for name, data in whole[reader].items():
                line = put(reader, name, data)
                assert line is None, f"{reader}/{name}: {line}"
    for reader in wanted:
        for name, data in seeds.hostile().get(reader, {}).items():
            put(reader, name, data)
        changed_files(reader, whole[reader])
        count = sum(1 for _ in (CORPUS / reader).glob("*/*"))
        size = sum(file.stat().st_size for file in (CORPUS / reader).glob("*/*"))
        print(f"{reader}: {count} files, {size:,} bytes")


if __name__ == "__main__":
    main()
