"""Paragraphs with questions by people (SQuAD's format), to plant like facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import Fact
from edgeinfinite.files import read_text_file

KIND = "squad"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph and the questions about it.

    Args:
        text: the paragraph.
        questions: each with its first answer; unanswered ones are left out.
    """

    text: str
    questions: tuple[tuple[str, str], ...]


def read_squad(path: Path) -> list[Paragraph]:
    """The paragraphs with answerable questions.

    Raises:
        EdgeInfiniteError: the file isn't SQuAD's JSON, or has no answerable question.
    """
    try:
        paragraphs = [
            Paragraph(paragraph["context"].strip(), tuple(_answered(paragraph["qas"])))
            for article in json.loads(read_text_file(path))["data"]
            for paragraph in article["paragraphs"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgeInfiniteError(f"{path} isn't a file of questions as SQuAD has them") from error
    found = [paragraph for paragraph in paragraphs if paragraph.questions]
    if not found:
        raise EdgeInfiniteError(f"{path} has no question with an answer")
    return found


def _answered(questions: Sequence[dict]) -> list[tuple[str, str]]:
    return [
        (str(one["question"]).strip(), str(one["answers"][0]["text"]).strip())
        for one in questions
        if one["answers"]
    ]


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
        question, answer = paragraph.questions[int(random.integers(len(paragraph.questions)))]
        facts.append(Fact(KIND, paragraph.text, f"Question: {question}\nAnswer:", f" {answer}"))
    return facts
