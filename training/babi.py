"""bAbI's files (arXiv 1502.05698): short stories of numbered facts, with questions among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file


@dataclass(frozen=True)
class StoryQuestion:
    """A question and all facts before it in its story.

    Args:
        row: its place in the file, from 0.
        facts: sentences, in order.
        question: the question.
        answer: the right answer.
        support: indices of the facts that answer it; empty where the file doesn't say.
    """

    row: str
    facts: tuple[str, ...]
    question: str
    answer: str
    support: frozenset[int] = frozenset()


Story = list[StoryQuestion]
"""A story's questions, in order; the last one has all facts before it."""


def read_stories(path: Path) -> list[Story]:
    """The stories of a file that have questions.

    Raises:
        EdgeInfiniteError: a line isn't bAbI's, or there is no question.
    """
    stories: list[Story] = [[]]
    facts: dict[int, str] = {}  # by the line's number in its story
    count = 0
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        if not line.strip():
            continue
        place, space, text = line.strip().partition(" ")
        if not place.isdigit() or not space:
            raise EdgeInfiniteError(f"{path}, line {number}: not a line of bAbI; it has no number")
        if int(place) == 1:
            facts = {}
            stories.append([])
        if "\t" not in text:
            facts[int(place)] = text.strip()
            continue
        question, answer, *given = (part.strip() for part in text.split("\t"))
        lines = {int(part) for part in "".join(given[:1]).split() if part.isdigit()}
        support = frozenset(index for index, place_ in enumerate(facts) if place_ in lines)
        known = tuple(facts.values())
        stories[-1].append(StoryQuestion(str(count), known, question, answer, support))
        count += 1
    if not count:
        raise EdgeInfiniteError(f"{path} has no question")
    return [story for story in stories if story]
