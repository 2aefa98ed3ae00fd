"""Long documents for training and evaluation: plain text, cut at lines, tokenised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError

_CHARACTERS_PER_TOKEN = 8
"""A generous bound: a stretch of this many characters per token always holds enough tokens."""


def find_documents(paths: Sequence[Path], suffixes: Sequence[str] = (".txt",)) -> list[Path]:
    """Finds text files in files and folders, in the order of their names.

    Args:
        paths: files or folders.
        suffixes: which files of a folder count.

    Raises:
        EdgeInfiniteError: a path doesn't exist, or there is no text at all.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise EdgeInfiniteError(f"{path} doesn't exist; give text files or folders of .txt")
        inside = sorted(path.iterdir()) if path.is_dir() else []
        found += [file for file in inside if file.suffix in suffixes] if path.is_dir() else [path]
    if not found:
        kinds = " or ".join(suffixes)
        raise EdgeInfiniteError(f"no {kinds} file in {', '.join(map(str, paths))}")
    return sorted(set(found), key=lambda path: (path.name, path))


def split_documents(paths: Sequence[Path], hold_out: float) -> tuple[list[Path], list[Path]]:
    """Splits documents into training and held-out ones, by a hash of their names.

    A document's side doesn't depend on its folder or on the other documents. Each side gets at
    least one document.

    Args:
        paths: two documents or more.
        hold_out: the share to hold out, approximately.

    Raises:
        EdgeInfiniteError: there is only one document.
    """
    if len(paths) < 2:
        raise EdgeInfiniteError(f"{paths[0]} is the only document; give one more to hold out")

    def place(path: Path) -> float:
        return int(hashlib.sha256(path.name.encode()).hexdigest()[:8], 16) / 16**8

    ordered = sorted(paths, key=place)
    count = sum(place(path) < hold_out for path in ordered)
    count = min(max(count, 1), len(ordered) - 1)
    return sorted(ordered[count:]), sorted(ordered[:count])


def excerpt(
    text: str, tokenizer: PreTrainedTokenizerBase, tokens: int, random: np.random.Generator
) -> list[int]:
    """`tokens` ids from somewhere in a text, beginning at a line.

    Raises:
        EdgeInfiniteError: the text is too short.
    """
    wanted = tokens * _CHARACTERS_PER_TOKEN
    start = int(random.integers(max(1, len(text) - wanted)))
    start = text.find("\n", start) + 1
    ids = encode(text[start : start + wanted], tokenizer)
    if len(ids) < tokens and start:
        ids = encode(text[:wanted], tokenizer)
    if len(ids) < tokens:
        raise EdgeInfiniteError(
            f"a document has only {len(ids):,} tokens where {tokens:,} are needed; "
            "give longer documents or ask for fewer tokens"
        )
    return ids[:tokens]


def encode(text: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Token ids of a text, without the special tokens that a tokenizer adds around it."""
    return list(tokenizer(text, add_special_tokens=False, verbose=False).input_ids)
