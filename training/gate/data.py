"""Texts for training the gate: plain text or JSONL, tokenised once, sampled by number.

A cache folder keeps the tokens of each file under a hash of the file and the tokenizer. They are
memory-mapped, so a corpus may be larger than RAM.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.training.texts import encode, find_documents

_SUFFIXES = (".txt", ".jsonl")


@dataclass(frozen=True)
class Document:
    """One text.

    Args:
        name: the file's name, for JSONL with the line: `texts.jsonl:12`.
        tokens: `[n]` int32, a memory map.
    """

    name: str
    tokens: np.ndarray


def load_documents(
    paths: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    cache: Path,
    progress: Callable[[str], None],
) -> list[Document]:
    """Loads text files (one document each), JSONL files (one per line, in `text`) or folders.

    Args:
        paths: files, or folders that are searched for `*.txt` and `*.jsonl`.
        tokenizer: of the backbone.
        cache: folder for the tokens; created if missing.
        progress: called with the name of each file that has to be tokenised.

    Raises:
        EdgeInfiniteError: there is no text, it isn't UTF-8, or a line isn't JSON with a `text`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    vocabulary = _digest_of(tokenizer)
    return [
        document
        for path in find_documents(paths, _SUFFIXES)
        for document in _documents_of(path, tokenizer, vocabulary, cache, progress)
    ]


def _documents_of(
    path: Path,
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: str,
    cache: Path,
    progress: Callable[[str], None],
) -> Iterator[Document]:
    digest = hashlib.sha256(vocabulary.encode() + path.suffix.encode() + path.read_bytes())
    tokens_file = cache / f"{digest.hexdigest()[:32]}.tokens.npy"
    ends_file = cache / f"{digest.hexdigest()[:32]}.ends.npy"
    if not (tokens_file.is_file() and ends_file.is_file()):
        progress(path.name)
        texts = _lines(path) if path.suffix == ".jsonl" else iter([read_text_file(path)])
        parts = [np.array(encode(text, tokenizer), np.int32) for text in texts]
        _save(tokens_file, np.concatenate(parts) if parts else np.empty(0, np.int32))
        _save(ends_file, np.cumsum([len(part) for part in parts], dtype=np.int64))
    tokens, start = np.load(tokens_file, mmap_mode="r"), 0
    for number, end in enumerate(np.load(ends_file).tolist(), start=1):
        name = f"{path.name}:{number}" if path.suffix == ".jsonl" else path.name
        yield Document(name, tokens[start:end])
        start = end


def _lines(path: Path) -> Iterator[str]:
    # Not `splitlines`: a JSON string may hold other line separators as they are.
    lines = read_text_file(path).removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            raise EdgeInfiniteError(
                f'{path}, line {number} isn\'t a JSON object with a string "text"; mend the line'
            )
        yield text


def _save(path: Path, array: np.ndarray) -> None:
    unfinished = path.with_suffix(".partial.npy")
    np.save(unfinished, array)
    unfinished.replace(path)


def _digest_of(tokenizer: PreTrainedTokenizerBase) -> str:
    if isinstance(tokenizer, PreTrainedTokenizerFast):
        return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
    return hashlib.sha256(json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()).hexdigest()


class Samples:
    """Stretches of documents by number: the same number gives the same stretch in every run.

    Every document gives one stretch before any gives a second one.

    Args:
        documents: too short ones are skipped.
        length: tokens per stretch.
        seed: decides order and place.

    Raises:
        EdgeInfiniteError: every document is too short.
    """

    def __init__(self, documents: Sequence[Document], length: int, seed: int) -> None:
        self.documents = [document for document in documents if len(document.tokens) >= length]
        self._length, self._seed = length, seed
        if not self.documents:
            longest = max((len(document.tokens) for document in documents), default=0)
            raise EdgeInfiniteError(
                f"a sample needs {length:,} tokens and the longest document has {longest:,}; "
                "give longer documents, or ask for fewer or shorter segments"
            )

    def __getitem__(self, index: int) -> np.ndarray:
        """The stretch with this number, `[length]` int64."""
        round_number, place = divmod(index, len(self.documents))
        order = np.random.default_rng([self._seed, round_number]).permutation(len(self.documents))
        tokens = self.documents[order[place]].tokens
        random = np.random.default_rng([self._seed, round_number, place])
        start = int(random.integers(len(tokens) - self._length + 1))
        return tokens[start : start + self._length].astype(np.int64)
