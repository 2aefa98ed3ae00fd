"""Hides facts between the sentences of a book, in prompts of a given length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.questions.prompts import Prompts
from edgeinfinite.files import read_text_file
from edgeinfinite.training.babi import StoryQuestion

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]?[A-Z])")
_CHARACTERS_PER_TOKEN = 8
"""A generous bound, so that an excerpt has enough sentences."""
_FEWEST_CHARACTERS = 4000
"""The first and the last sentence of an excerpt are cut, and left out."""
_TRIES = 16
"""Places to look at in one book: a table or a listing has few ends of sentences."""


@dataclass(frozen=True)
class HiddenQuestion:
    """A question about a long text.

    Args:
        context: sentences of a book, with the facts between them in order.
        input: the question.
        answers: the right answer.
    """

    context: str
    input: str
    answers: tuple[str, ...]


def fits(question: StoryQuestion, prompts: Prompts, length: int) -> bool:
    """Whether the facts fit a prompt of this length in tokens."""
    return len(prompts.build(_hidden(question, [])).tokens) <= length


def hide(
    question: StoryQuestion,
    books: Sequence[Path],
    prompts: Prompts,
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    random: np.random.Generator,
) -> HiddenQuestion:
    """Spreads the facts over consecutive sentences from a random place in a book.

    Args:
        question: with facts that fit, see `fits`.
        books: text files; one is drawn.
        prompts: builds the task's prompts.
        tokenizer: the backbone's.
        length: most tokens of the whole prompt, which is shorter by less than a sentence.
        random: source of randomness.

    Raises:
        EdgeInfiniteError: the book is too short.
    """
    book = books[int(random.integers(len(books)))]
    room = length - len(prompts.build(_hidden(question, [])).tokens)
    sentences = _enough_sentences(book, room, tokenizer, random)
    if sentences is None:
        raise EdgeInfiniteError(
            f"{book.name} has too few sentences for a prompt of {length:,} tokens; give longer or "
            "plainer --books"
        )
    places = np.sort(random.integers(len(sentences) + 1, size=len(question.facts)))
    while True:
        hidden = _hidden(question, sentences, places)
        over = len(prompts.build(hidden).tokens) - length
        if over <= 0 or not sentences:
            return hidden
        # A text has about as many tokens as its sentences, not exactly: drop the last ones.
        sentences = sentences[: -max(1, over // 64)]
        places = np.minimum(places, len(sentences))


def _hidden(
    question: StoryQuestion, sentences: Sequence[str], places: Sequence[int] | np.ndarray = ()
) -> HiddenQuestion:
    """Puts each fact before the sentence at its place; all at the start if no place is given."""
    before: dict[int, list[str]] = {}
    given = list(places) or [0] * len(question.facts)
    for place, fact in zip(given, question.facts, strict=True):
        before.setdefault(int(place), []).append(fact)
    parts: list[str] = []
    for index, sentence in enumerate([*sentences, ""]):
        parts += [*before.get(index, []), sentence]
    return HiddenQuestion(" ".join(parts).strip(), question.question, (question.answer,))


def _enough_sentences(
    book: Path, room: int, tokenizer: PreTrainedTokenizerBase, random: np.random.Generator
) -> list[str] | None:
    """As many consecutive sentences as fit `room` tokens; None if no place tried has enough."""
    for _ in range(_TRIES):
        sentences = _excerpt(book, room, random)
        if not sentences:
            continue
        counts = [len(ids) for ids in tokenizer([f" {s}" for s in sentences]).input_ids]
        total = np.cumsum(counts)
        if room <= total[-1]:
            return sentences[: int(np.searchsorted(total, room, side="right"))]
    return None


def _excerpt(book: Path, tokens: int, random: np.random.Generator) -> list[str]:
    """Whole sentences from a random place in a book, more than enough for this many tokens."""
    text = _text(book)
    wanted = max(_FEWEST_CHARACTERS, tokens * _CHARACTERS_PER_TOKEN)
    start = int(random.integers(max(1, len(text) - wanted)))
    return _SENTENCE_END.split(text[start : start + wanted])[1:-1]


@lru_cache(maxsize=8)
def _text(book: Path) -> str:
    return " ".join(read_text_file(book).split())
