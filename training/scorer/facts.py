"""Facts that training plants into long texts and asks for at their end.

Tests of the trained scorer use other topics, in other wordings, with other answers
(`evaluation/facts.py`): a test compares the two. So nothing here or in `topics` is about pass keys,
treasures, or what else stands there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.training.scorer.topics import ABOUT, TOPICS


@dataclass(frozen=True)
class Fact:
    """One planted fact.

    Args:
        topic: which of `TOPICS` it is of.
        statement: stands somewhere in the text.
        question: stands at the text's end; the answer continues it.
        answer: with a leading space.
    """

    topic: str
    statement: str
    question: str
    answer: str


def draw_facts(count: int, random: np.random.Generator) -> list[Fact]:
    """Facts on different topics, about different people where they are about people.

    Args:
        count: at most the number of topics.
        random: the source of chance.

    Raises:
        EdgeInfiniteError: there are fewer topics.
    """
    if count > len(TOPICS):
        raise EdgeInfiniteError(
            f"there are {len(TOPICS)} facts to plant in a text, {count} were asked for; give fewer "
            "--facts"
        )
    names: dict[str, None] = {}
    while len(names) < count:
        names[ABOUT[int(random.integers(len(ABOUT)))](random)] = None
    topics = random.permutation(list(TOPICS))[:count]
    return [_fact(topic, name, random) for topic, name in zip(topics, names, strict=True)]


def _fact(name_of_topic: str, name: str, random: np.random.Generator) -> Fact:
    topic = TOPICS[name_of_topic]
    answer = topic.draw(random)
    while answer in name:  # a horse by its rider's name would answer its own question
        answer = topic.draw(random)
    question = topic.questions[int(random.integers(len(topic.questions)))].format(name=name)
    statement = topic.statement.format(name=name, answer=answer)
    return Fact(name_of_topic, _sentence(statement), _sentence(question), f" {answer}")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
