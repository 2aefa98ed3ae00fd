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
    """

    row: str
    facts: tuple[str, ...]
    question: str
    answer: str


def find_stories(folder: Path, task: str) -> Path:
    """The file with a task's test split, `..._qa1_..._test.txt` or `qa1_..._test.txt`.

    Raises:
        EdgeInfiniteError: there is no such file, or more than one.
    """
    if not folder.is_dir():
        raise EdgeInfiniteError(f"{folder} isn't a folder; give the one with bAbI's files")
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.name.endswith("_test.txt") and f"_{task}_" in f"_{path.name}"
    ]
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no such file"
        raise EdgeInfiniteError(f"{folder} needs one {task}_..._test.txt of bAbI, it has {names}")
    return found[0]


def read_stories(path: Path) -> list[StoryQuestion]:
    """Every question of a file.

    Raises:
        EdgeInfiniteError: a line isn't bAbI's, or there is no question.
    """
    questions: list[StoryQuestion] = []
    facts: list[str] = []
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        if not line.strip():
            continue
        place, space, text = line.strip().partition(" ")
        if not place.isdigit() or not space:
            raise EdgeInfiniteError(f"{path}, line {number}: not a line of bAbI; it has no number")
        if int(place) == 1:
            facts = []
        if "\t" not in text:
            facts.append(text.strip())
            continue
        question, answer = (part.strip() for part in text.split("\t")[:2])
        row = str(len(questions))
        questions.append(StoryQuestion(row, tuple(facts), question, answer))
    if not questions:
        raise EdgeInfiniteError(f"{path} has no question")
    return questions
