"""Facts of bAbI's stories between the lines of a long text, as in BABILong (arXiv 2406.10149)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.training.scorer.composed import Composed, Piece, assemble
from edgeinfinite.training.texts import encode

_SAMPLE = 2_000
"""So many characters tell how many tokens a document has."""
_PLACED_IN = 0.85
"""The facts stand in this first share of the text: the end is left out if it doesn't fit."""


@dataclass(frozen=True)
class StoryQuestion:
    """A question about a story, and which of its lines answer it."""

    text: str
    answer: str
    support: frozenset[int]


@dataclass(frozen=True)
class Story:
    """Lines in order, by their number in the file, and the questions about them."""

    lines: dict[int, str]
    questions: tuple[StoryQuestion, ...]


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
        asked = story.questions[-3:]
        support = frozenset().union(*(question.support for question in asked))
        document = self._documents[int(random.integers(len(self._documents)))]
        sample = document[:_SAMPLE]
        characters = length * len(sample) // max(1, len(encode(sample, tokenizer)))
        start = document.find("\n", int(random.integers(max(1, len(document) - characters)))) + 1
        body = document[start : start + characters]
        sentences = [i + 1 for i, letter in enumerate(body) if letter in ".!?\n"]
        within = [cut for cut in sentences if cut < _PLACED_IN * len(body)] or [0]
        cuts = sorted(within[int(random.integers(len(within)))] for _ in story.lines)
        pieces: list[Piece] = []
        before = 0
        for cut, (number, line) in zip(cuts, story.lines.items(), strict=True):
            pieces += [Piece(body[before:cut]), Piece(f" {line}", number in support)]
            before = cut
        end = "".join(f"\n\nQuestion: {one.text}\nAnswer: {one.answer}" for one in asked)
        return assemble([*pieces, Piece(body[before:])], end, tokenizer, length)


def read_stories(path: Path, documents: Sequence[str]) -> Stories:
    """Reads a file of bAbI: numbered lines; a question has its answer and lines behind tabs.

    Raises:
        EdgeInfiniteError: it isn't such a file.
    """
    stories: list[Story] = []
    lines: dict[int, str] = {}
    questions: list[StoryQuestion] = []
    try:
        for row in read_text_file(path).splitlines():
            number, _, rest = row.partition(" ")
            if int(number) == 1 and questions:
                stories.append(Story(lines, tuple(questions)))
            if int(number) == 1:
                lines, questions = {}, []
            text, *answer = rest.split("\t")
            if answer:
                support = frozenset(int(line) for line in answer[1].split())
                questions.append(StoryQuestion(text.strip(), answer[0], support))
            else:
                lines[int(number)] = text.strip()
    except (ValueError, IndexError) as error:
        raise EdgeInfiniteError(f"{path} isn't a file of stories as bAbI has them") from error
    if questions:
        stories.append(Story(lines, tuple(questions)))
    if not stories:
        raise EdgeInfiniteError(f"{path} has no story with a question")
    return Stories(stories, documents)
