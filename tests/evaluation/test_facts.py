"""Training uses none of the test's topics, wordings or answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation import facts as tested
from edgeinfinite.training.scorer import facts as trained

# fmt: off
GRAMMAR = {
    "a", "an", "and", "as", "at", "be", "before", "by", "can", "did", "every", "for", "from", "had",
    "has", "he", "her", "him", "his", "how", "i", "in", "is", "it", "its", "last", "must", "near",
    "no", "not", "of", "on", "one", "or", "other", "own", "s", "says", "shall", "she", "so", "that",
    "the", "their", "them", "then", "three", "to", "two", "under", "was", "way", "were", "what",
    "when", "where", "which", "while", "who", "will", "with", "without", "you",
}
# fmt: on


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def runs(texts: Iterable[str], length: int) -> set[tuple[str, ...]]:
    return {
        tuple(found[start : start + length])
        for text in texts
        for found in [words(text)]
        for start in range(len(found) - length + 1)
    }


@pytest.fixture(scope="module")
def drawn() -> tuple[list[trained.Fact], list[tested.Fact]]:
    random = np.random.default_rng(0)
    return (
        [fact for _ in range(300) for fact in trained.draw_facts(20, random)],
        [fact for _ in range(300) for fact in tested.draw_facts(16, random)],
    )


def test_no_wording_of_the_test_occurs_in_training(drawn):
    ours, theirs = (
        runs((text for fact in facts for text in (fact.statement, fact.question)), 4)
        for facts in drawn
    )
    assert len(ours) > 1000 and len(theirs) > 500
    assert not ours & theirs


def test_no_answer_of_the_test_occurs_in_training(drawn):
    """Digits are shared, of course; words that carry meaning aren't."""
    ours, theirs = (
        {word for fact in facts for word in words(fact.answer)} - GRAMMAR for facts in drawn
    )
    assert len(ours) > 100 and len(theirs) > 50
    assert not ours & theirs


def test_no_topic_of_the_test_occurs_in_training():
    """What a question is about are the words in it that aren't grammar."""
    about = [
        words(question)
        for topic in trained.TOPICS.values()
        for question in (topic.statement, *topic.questions)
    ]
    ours = {word for text in about for word in text} - GRAMMAR
    assert len(trained.TOPICS) >= 25
    for fact in tested.draw_facts(16, np.random.default_rng(1)):
        subject = set(words(fact.question)) - GRAMMAR - {"question", "answer", "called", "number"}
        assert len(subject & ours) <= 1, (fact.question, subject & ours)


def test_the_statement_holds_the_answer_and_the_question_does_not(drawn):
    for fact in (*drawn[0], *drawn[1]):
        assert fact.answer.strip().lower() in fact.statement.lower()
        assert fact.answer.strip().lower() not in fact.question.lower()
        assert fact.answer[0] == " " != fact.question[-1]


def test_the_kinds_take_turns_and_no_topic_comes_twice():
    for seed in range(20):
        facts = tested.draw_facts(8, np.random.default_rng(seed))
        assert sorted(fact.kind for fact in facts) == sorted(tested.KINDS * 2)
        assert len({fact.question for fact in facts}) == 8
    first = {tested.draw_facts(1, np.random.default_rng(seed))[0].kind for seed in range(40)}
    assert first == set(tested.KINDS)


@pytest.mark.parametrize(
    ("count", "kinds", "says"),
    [(0, ("words",), "give 1 to 4"), (5, ("words",), "give 1 to 4"), (2, ("colours",), "colours")],
)
def test_impossible_draws_are_refused(count, kinds, says):
    with pytest.raises(EdgeInfiniteError, match=says):
        tested.draw_facts(count, np.random.default_rng(0), kinds)
