"""Facts of bAbI's stories between the lines of a long text, as in BABILong (arXiv 2406.10149)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.training.babi import Story
from edgeinfinite.training.scorer.composed import Composed, Piece, assemble
from edgeinfinite.training.texts import encode

_MOST_QUESTIONS = 3
_SAMPLE = 2_000
"""So many characters tell how many tokens a document has."""
_PLACED_IN = 0.85
"""The facts stand in this first share of the text: the end is left out if it doesn't fit."""


class Stories:
    """Composes excerpts of documents with a story's lines in them."""

    def __init__(self, stories: Sequence[Story], documents: Sequence[str]) -> None:
        """Takes stories with a question each, or more, and texts to hide them in."""
        self._stories = stories
        self._documents = documents

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """An excerpt with the lines spread over it, and the story's last questions at the end."""
        story = self._stories[int(random.integers(len(self._stories)))]
        asked, facts = story[-_MOST_QUESTIONS:], story[-1].facts
        support = frozenset().union(*(question.support for question in asked))
        document = self._documents[int(random.integers(len(self._documents)))]
        sample = document[:_SAMPLE]
        characters = length * len(sample) // max(1, len(encode(sample, tokenizer)))
        start = document.find("\n", int(random.integers(max(1, len(document) - characters)))) + 1
        body = document[start : start + characters]
        sentences = [i + 1 for i, letter in enumerate(body) if letter in ".!?\n"]
        within = [cut for cut in sentences if cut < _PLACED_IN * len(body)] or [0]
        cuts = sorted(within[int(random.integers(len(within)))] for _ in facts)
        pieces: list[Piece] = []
        before = 0
        for index, (cut, fact) in enumerate(zip(cuts, facts, strict=True)):
            pieces += [Piece(body[before:cut]), Piece(f" {fact}", index in support)]
            before = cut
        end = "".join(f"\n\nQuestion: {one.question}\nAnswer: {one.answer}" for one in asked)
        return assemble([*pieces, Piece(body[before:])], end, tokenizer, length)
