"""The files of tests/fuzz for Kotlin's readers: the corpus, and whole files changed at random.

`READER/read` and `READER/refused`, as Python's readers have it; of documents the app reads those
that are text. Files in `tokenizer/either` are refused by Python for a part of them that Kotlin
doesn't read, such as how to truncate, or hold one id twice, of which the tokenizers library takes
any.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path

from fuzz.changes import changed
from fuzz.readers import CORPUS, READERS, TOKENIZER_FILES, refusal, refusal_of_corpus

DOCUMENT = "document"

SHARED = ("manifest", "session", *TOKENIZER_FILES, DOCUMENT)
"""Readers that both languages have."""

CHANGED = 120
"""Files of each kind."""

_LIBRARY_S = ("tokenizer.json is damaged", "can't keep the two apart")


def write_fuzzed(folder: Path) -> None:
    """Writes them."""
    for reader in SHARED:
        whole = sorted((CORPUS / reader / "read").iterdir())
        dice = random.Random(reader)
        files: dict[str, tuple[bytes, Callable[[], str | None]]] = {}
        for path in sorted((CORPUS / reader).glob("*/*")):
            refused = functools.partial(refusal_of_corpus, path.relative_to(CORPUS))
            files[path.name] = path.read_bytes(), refused
        for number in range(CHANGED):
            source = dice.choice(whole)
            made = changed(reader, source.read_bytes(), dice)
            refused = functools.partial(refusal, READERS[reader], made)
            files[f"changed-{number:03}{source.suffix}"] = made, refused
        for name, (data, refused) in files.items():
            path = folder / reader / _outcome(reader, data, refused) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _outcome(reader: str, data: bytes, refused: Callable[[], str | None]) -> str:
    if reader == DOCUMENT:
        return "read" if _is_text(data) else "refused"
    line = refused()
    if reader == "tokenizer" and (
        _ids_stand_twice(data) or any(s in (line or "") for s in _LIBRARY_S)
    ):
        return "either"
    return "read" if line is None else "refused"


def _is_text(data: bytes) -> bool:
    """What the app takes: UTF-8 without the character that only binary files have, and no RTF."""
    try:
        return "\0" not in data.decode("utf-8") and not data.startswith(b"{\\rtf")
    except UnicodeDecodeError:
        return False


def _ids_stand_twice(data: bytes) -> bool:
    try:
        vocabulary = json.loads(data)["model"]["vocab"]
        return len(set(vocabulary.values())) < len(vocabulary)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
