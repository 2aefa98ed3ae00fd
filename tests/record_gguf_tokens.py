"""Records what llama.cpp makes of `gguf_vocabularies`: `python tests/record_gguf_tokens.py`.

Needs llama-cpp-python, whose version stands in the record; it takes minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gguf_vocabularies import BYTES, CASES, MARKS, TEXTS, with_special_tokens, write

from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS

RECORD = Path(__file__).parent / "models" / "checkpoint" / "gguf" / "gguf_tokens.json"


def digest(encoded: Iterable[list[int]]) -> str:
    """Of the ids of many texts."""
    lines = "\n".join(" ".join(map(str, ids)) for ids in encoded)
    return hashlib.sha256(lines.encode()).hexdigest()[:24]


def texts_of(keys: dict[str, Any]) -> list[str]:
    """What a case is compared on: texts with its own special tokens in them.

    Phi-3's tokens take blanks behind them along: in llama.cpp those of ASCII, in the tokenizers
    library, which the model was trained with, all.
    """
    special = [
        text
        for text, kind in zip(keys["tokens"], keys["token_type"], strict=True)
        if kind in (2, 3, 4)
    ]
    texts = with_special_tokens(TEXTS, [*special, "<|im_end|>", "</s>"])
    return [re.sub(r"[^\S\x00-\x7f]", " ", text) for text in texts] if "name" in keys else texts


class Peer:
    """llama.cpp's tokenizer of a file."""

    def __init__(self, path: Path) -> None:
        import llama_cpp

        self._library = llama_cpp
        self._model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
        self._vocabulary = self._model._model.vocab

    def encode(self, text: str) -> list[int]:
        """As llama.cpp encodes a text of its own, control tokens in it included."""
        return self._model.tokenize(text.encode(), add_bos=True, special=True)

    def ends(self) -> list[int]:
        """Ids that end an answer."""
        count = self._library.llama_vocab_n_tokens(self._vocabulary)
        is_end = self._library.llama_vocab_is_eog
        return [token for token in range(count) if is_end(self._vocabulary, token)]

    def close(self) -> None:
        self._model.close()


def record_of(path: Path, texts: list[str]) -> dict[str, Any]:
    """A file's tokens and ends as llama.cpp has them."""
    peer = Peer(path)
    try:
        return {"tokens": digest(map(peer.encode, texts)), "ends": peer.ends()}
    finally:
        peer.close()


def main() -> None:
    import llama_cpp

    record: dict[str, Any] = {"llama-cpp-python": llama_cpp.__version__, "pre": {}, "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.gguf"
        for name, kind in PRE_TOKENIZERS.items():
            keys = MARKS if kind.spaces_as_marks else BYTES
            found = record_of(write(path, **{**keys, "pre": name}), TEXTS)
            record["pre"][name] = found["tokens"]
        for name, keys in CASES.items():
            record["cases"][name] = record_of(write(path, **keys), texts_of(keys))
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
