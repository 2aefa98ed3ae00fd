"""Texts of articles, with questions that people asked about them at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.training.scorer.composed import Composed, Piece, assemble
from edgeinfinite.training.squad import Article, Paragraph, Question
from edgeinfinite.training.texts import encode

_FORMATS = (
    "\n\nQuestion: {question}\nAnswer: {answer}",
    "\n{question} {answer}.",
    "\n\nQ: {question}\nA: {answer}",
    "\n\nAnswer the question by the text above.\n{question}\n{answer}",
)
_QUESTION_TOKENS = 40
"""About as many tokens does a question take with its answer."""


class Articles:
    """Composes texts of one article, or of passages from many, with questions at the end."""

    def __init__(self, articles: Sequence[Article]) -> None:
        """Takes the paragraphs of each article, in order."""
        self._articles = articles

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """One article in order, or numbered passages from all; a third asks halfway as well."""
        count = max(2, length // 400)
        room = length - count * _QUESTION_TOKENS
        in_order = random.random() < 0.5
        heading = "\n\n" if in_order else "\n\nPassage {number}:\n"
        drawn_from = self._one_after_another(random) if in_order else self._mixed(random)
        paragraphs = _filling(drawn_from, heading, tokenizer, room)
        wording = _FORMATS[int(random.integers(len(_FORMATS)))]
        with_questions = [i for i, paragraph in enumerate(paragraphs) if paragraph.questions]
        drawn = random.permutation(with_questions)[:count]
        questions = {
            int(i): paragraphs[i].questions[int(random.integers(len(paragraphs[i].questions)))]
            for i in drawn
        }
        halfway = len(paragraphs) * 6 // 10 if random.random() < 1 / 3 else 0
        early = {i for i in questions if i < halfway // 2}
        pieces: list[Piece] = []
        for i, paragraph in enumerate(paragraphs):
            if i == halfway:
                pieces += [Piece(_asked(questions[j], wording)) for j in sorted(early)]
            pieces.append(Piece(heading.format(number=i + 1)))
            pieces += _pieces(paragraph.text, questions.get(i))
        late = [int(i) for i in random.permutation(sorted(set(questions) - early))]
        end = "".join(_asked(questions[i], wording) for i in late)
        return assemble(pieces, end, tokenizer, length)

    def _one_after_another(self, random: np.random.Generator) -> Iterator[Paragraph]:
        """Articles in any order, the first from anywhere in its first half."""
        order = [int(i) for i in random.permutation(len(self._articles))]
        first = self._articles[order[0]]
        yield from first[int(random.integers(max(1, len(first) // 2))) :]
        for i in order[1:]:
            yield from self._articles[i]

    def _mixed(self, random: np.random.Generator) -> Iterator[Paragraph]:
        """Single paragraphs of any article."""
        everything = [paragraph for article in self._articles for paragraph in article]
        for i in random.permutation(len(everything)):
            yield everything[int(i)]


def _filling(
    paragraphs: Iterable[Paragraph], heading: str, tokenizer: PreTrainedTokenizerBase, room: int
) -> list[Paragraph]:
    """The first paragraphs, as many as fit with their headings; one at least."""
    chosen: list[Paragraph] = []
    for paragraph in paragraphs:
        room -= len(encode(heading.format(number=100) + paragraph.text, tokenizer))
        if room < 0 and chosen:
            break
        chosen.append(paragraph)
    return chosen


def _asked(question: Question, wording: str) -> str:
    return wording.format(question=question.text, answer=question.answer)


def _pieces(text: str, question: Question | None) -> list[Piece]:
    """A paragraph, the sentence with the answer marked as asked for."""
    if question is None:
        return [Piece(text)]
    before = text.rfind(". ", 0, question.start)
    start = 0 if before < 0 else before + 1
    after = text.find(". ", question.start + len(question.answer))
    end = len(text) if after < 0 else after + 1
    parts = (Piece(text[:start]), Piece(text[start:end], asked=True), Piece(text[end:]))
    return [part for part in parts if part.text]
