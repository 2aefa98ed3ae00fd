"""Articles with questions that people asked about them (SQuAD's format)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file


@dataclass(frozen=True)
class Question:
    """A question about a paragraph.

    Args:
        text: the question.
        answer: a stretch of the paragraph, the first answer that was given.
        start: the character at which it begins there.
    """

    text: str
    answer: str
    start: int


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with the questions that it answers."""

    text: str
    questions: tuple[Question, ...]


Article = list[Paragraph]


def read_articles(path: Path) -> list[Article]:
    """The articles that somebody asks about, paragraphs without questions included.

    Raises:
        EdgeInfiniteError: the file isn't SQuAD's JSON, or has no answerable question.
    """
    try:
        articles = [
            [
                Paragraph(paragraph["context"], tuple(_answerable(paragraph["qas"])))
                for paragraph in article["paragraphs"]
            ]
            for article in json.loads(read_text_file(path))["data"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgeInfiniteError(f"{path} isn't a file of questions as SQuAD has them") from error
    found = [article for article in articles if any(each.questions for each in article)]
    if not found:
        raise EdgeInfiniteError(f"{path} has no question with an answer")
    return found


def _answerable(entries: Sequence[dict]) -> list[Question]:
    return [
        Question(str(one["question"]).strip(), str(answer["text"]), int(answer["answer_start"]))
        for one in entries
        for answer in one["answers"][:1]
    ]
