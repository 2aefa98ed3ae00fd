"""Every character of Unicode's first two planes, which hold every script, and how it is encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from tokenizers import Tokenizer

SCRIPTS = range(0x20000)
SURROGATES = range(0xD800, 0xE000)
BLOCK = 768
TOGETHER = 24


def character_sums(tokenizer: Tokenizer) -> list[str]:
    """A sum for each block of characters: of their ids, among their neighbours and alone."""
    sums = []
    for start in range(0, len(SCRIPTS), BLOCK):
        digest = hashlib.sha256()
        texts = list(_texts(SCRIPTS[start : start + BLOCK]))
        for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
            digest.update((",".join(map(str, encoding.ids)) + "\n").encode())
        sums.append(digest.hexdigest())
    return sums


def _texts(block: range) -> Iterator[str]:
    for start in range(0, len(block), TOGETHER):
        points = block[start : start + TOGETHER]
        characters = [chr(point) for point in points if point not in SURROGATES]
        yield "".join(characters)
        yield "a" + " ".join(characters)
