"""Texts with facts in them, and the questions about these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import Fact, draw_facts
from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.squad import draw_questions, read_squad
from edgeinfinite.files import read_text_file
from edgeinfinite.training.texts import encode, excerpt


@dataclass(frozen=True)
class Question:
    """What is asked about one fact.

    Args:
        fact: the fact.
        depth: where it begins, as a share of the text.
        asked: tokens of the question, up to where the answer begins.
        answer: tokens of the answer.
    """

    fact: Fact
    depth: float
    asked: list[int]
    answer: list[int]

    @property
    def tokens(self) -> int:
        """Of question and answer."""
        return len(self.asked) + len(self.answer)


@dataclass(frozen=True)
class PlantedText:
    """A text with facts.

    Args:
        tokens: the text before the questions.
        questions: in the order of the facts in the text.
    """

    tokens: list[int]
    questions: list[Question]


def planted_text(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    seed: int,
    options: PasskeyOptions,
) -> PlantedText:
    """The text of one sample: with the longest question it has `length` tokens.

    Raises:
        EdgeInfiniteError: the document is too short, or `length` for the facts.
    """
    random = np.random.default_rng((seed, length))
    facts = drawn_facts(options, random)
    document = read_text_file(documents[int(random.integers(len(documents)))])
    asked = [encode(f"\n\n{fact.question}", tokenizer) for fact in facts]
    answers = [encode(fact.answer, tokenizer) for fact in facts]
    statements = [encode(f"\n\n{fact.statement}\n\n", tokenizer) for fact in facts]
    longest = max(len(a) + len(b) for a, b in zip(asked, answers, strict=True))
    room = length - longest - sum(map(len, statements))
    if room < 0:
        raise EdgeInfiniteError(
            f"{length:,} tokens are too few for {len(facts)} facts and a question: "
            f"these have {length - room:,}; give longer --lengths or fewer --facts"
        )
    body = excerpt(document, tokenizer, room, random)
    tokens: list[int] = []
    questions = []
    before = 0
    for index, fact in enumerate(facts):
        cut = int((index + 0.5) / len(facts) * len(body))
        tokens += body[before:cut]
        depth = round(len(tokens) / length, 3)
        questions.append(Question(fact, depth, asked[index], answers[index]))
        tokens += statements[index]
        before = cut
    return PlantedText(tokens + body[before:], questions)


def drawn_facts(options: PasskeyOptions, random: np.random.Generator) -> list[Fact]:
    """Invented facts, or paragraphs of a file with questions."""
    if options.questions is None:
        return draw_facts(options.facts, random, options.kinds)
    return draw_questions(read_squad(Path(options.questions)), options.facts, random)
