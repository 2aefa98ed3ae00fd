"""Paragraphs with questions by people (SQuAD's format), to plant like facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import Fact
from edgeinfinite.training.squad import Paragraph, read_articles

KIND = "squad"


def read_squad(path: Path) -> list[Paragraph]:
    """The paragraphs with answerable questions.

    Raises:
        EdgeInfiniteError: the file isn't SQuAD's JSON, or has no answerable question.
    """
    articles = read_articles(path)
    return [paragraph for article in articles for paragraph in article if paragraph.questions]


def draw_questions(
    paragraphs: Sequence[Paragraph], count: int, random: np.random.Generator
) -> list[Fact]:
    """Draws paragraphs to plant, each with one of its questions.

    Args:
        paragraphs: as `read_squad` gives them.
        count: number of different paragraphs.
        random: source of randomness.

    Raises:
        EdgeInfiniteError: there are fewer.
    """
    if count > len(paragraphs):
        raise EdgeInfiniteError(
            f"the questions are about {len(paragraphs)} paragraphs, not {count}"
        )
    facts = []
    for index in random.choice(len(paragraphs), count, replace=False):
        paragraph = paragraphs[int(index)]
        asked = paragraph.questions[int(random.integers(len(paragraph.questions)))]
        question, answer = f"Question: {asked.text}\nAnswer:", f" {asked.answer.strip()}"
        facts.append(Fact(KIND, paragraph.text.strip(), question, answer))
    return facts
