"""An endless text, the same for every run with one seed, whatever was read of it before."""

from __future__ import annotations

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

_LARGEST_PIECE = 1024
"""Tokens of the largest piece that is fed at once; sizes from 1 to this are even on a log scale."""


class TextStream:
    """Paragraphs of a text in random order, in pieces of random sizes.

    Args:
        tokenizer: of the artifact.
        text: at least one paragraph.
        seed: of the order and the sizes.

    Raises:
        EdgeInfiniteError: the text is empty.
    """

    def __init__(self, tokenizer: TextTokenizer, text: str, seed: int) -> None:
        paragraphs = [f"{part}\n\n" for part in text.split("\n\n") if part.strip()]
        self._paragraphs = [list(tokenizer.encode_text(part)) for part in paragraphs]
        if not any(self._paragraphs):
            raise EdgeInfiniteError("the text to soak in has no word; give another --text")
        self._seed = seed

    def tokens(self, stretch: int, count: int) -> list[int]:
        """`count` tokens for a stretch."""
        random, found = self.random(stretch), list[int]()
        while len(found) < count:
            found += self._paragraphs[random.integers(len(self._paragraphs))]
        return found[:count]

    def random(self, stretch: int) -> np.random.Generator:
        """What decides everything else in a stretch."""
        return np.random.default_rng((self._seed, stretch))


def pieces(tokens: list[int], random: np.random.Generator) -> list[list[int]]:
    """The tokens in pieces, single ones and long ones, as prompts, turns and decoding feed them."""
    found, start = [], 0
    while start < len(tokens):
        size = int(np.exp(random.uniform(0.0, np.log(_LARGEST_PIECE))))
        found.append(tokens[start : start + size])
        start += size
    return found
