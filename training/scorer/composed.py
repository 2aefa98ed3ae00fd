"""Texts that end by asking for what stood in them, put together from pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.training.texts import encode


@dataclass(frozen=True)
class Composed:
    """A text that asks for some of its own tokens.

    Args:
        tokens: T ids.
        planted: positions of the tokens that are asked for.
        asking: how many tokens at the end ask for them and answer.
    """

    tokens: list[int]
    planted: list[int]
    asking: int


class TextSource(Protocol):
    """Something that composes training texts."""

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """A text of at most `length` tokens.

        Args:
            tokenizer: the backbone's.
            length: in tokens.
            random: the source of chance.
        """
        ...


@dataclass(frozen=True)
class Piece:
    """A stretch of a text.

    Args:
        text: as it stands there, with the white space around it.
        asked: whether something later in the text asks for it.
    """

    text: str
    asked: bool = False


def assemble(
    pieces: Iterable[Piece], end: str, tokenizer: PreTrainedTokenizerBase, length: int
) -> Composed:
    """Joins pieces and the questions at the end.

    Args:
        pieces: in the order of the text; those that don't fit are left out.
        end: questions with their answers.
        tokenizer: the backbone's.
        length: at most so many tokens.
    """
    asking = encode(end, tokenizer)[-length // 2 :]
    tokens: list[int] = []
    planted: list[int] = []
    for piece in pieces:
        ids = encode(piece.text, tokenizer)[: length - len(asking) - len(tokens)]
        if piece.asked:
            planted += range(len(tokens), len(tokens) + len(ids))
        tokens += ids
    return Composed(tokens + asking, planted, len(asking))
