"""BABILong's first five tasks: prompts, possible answers, score.

Prompts have the parts of BABILong's (instruction, examples, form of the answer, text, question) in
our own words. They end with `Answer:` as their examples do, without a chat template, so that the
next token is the answer. No torch here: the command line reads this first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        name: `qa1` to `qa5`.
        about: explains the facts.
        examples: facts, a question and its answer.
        labels: all possible answers, in lower case.
    """

    name: str
    about: str
    examples: tuple[tuple[str, str, str], ...]
    labels: frozenset[str]

    @property
    def prompt(self) -> str:
        """The template, with `{context}` and `{input}`."""
        examples = "\n\n".join(
            f"<example>\n{facts}\nQuestion: {question}\nAnswer: {answer}\n</example>"
            for facts, question, answer in self.examples
        )
        return (
            f"A long text follows. Facts are hidden in it, and the rest of it is unrelated. "
            f"{self.about} Answer the question from these facts alone.\n\n{examples}\n\n"
            "Give the answer in one word and nothing else.\n\n"
            "<context>\n{context}\n</context>\n\nQuestion: {input}\nAnswer:"
        )


_PLACES = frozenset({"bathroom", "bedroom", "garden", "hallway", "kitchen", "office"})
_CARRIED = "Where a person goes, what that person holds goes too; what was put down stays there."

TASKS = {
    task.name: task
    for task in (
        Task(
            "qa1",
            "They say where people go. Somebody who went to several places is at the last one.",
            (
                ("Ruth went to the cellar. Paul moved to the attic.", "Where is Ruth?", "cellar"),
                ("Paul went to the shop. Paul moved to the cellar.", "Where is Paul?", "cellar"),
            ),
            _PLACES,
        ),
        Task(
            "qa2",
            f"They say where people go and what they take and put down. {_CARRIED}",
            (
                ("Ruth got the lamp. Ruth went to the cellar.", "Where is the lamp?", "cellar"),
                (
                    "Paul went to the shop. Paul got the book. Paul dropped the book. "
                    "Paul moved to the attic.",
                    "Where is the book?",
                    "shop",
                ),
            ),
            _PLACES,
        ),
        Task(
            "qa3",
            f"They say where people go and what they take and put down. {_CARRIED}",
            (
                (
                    "Ruth got the lamp. Ruth went to the cellar. Ruth moved to the attic.",
                    "Where was the lamp before the attic?",
                    "cellar",
                ),
                (
                    "Paul got the book. Paul went to the shop. Paul moved to the cellar. "
                    "Paul went to the attic.",
                    "Where was the book before the cellar?",
                    "shop",
                ),
            ),
            _PLACES,
        ),
        Task(
            "qa4",
            "They say how rooms lie to each other.",
            (
                (
                    "The cellar is south of the attic. The shop is north of the attic.",
                    "What is north of the attic?",
                    "shop",
                ),
                (
                    "The shop is west of the attic. The cellar is east of the attic.",
                    "What is the attic east of?",
                    "shop",
                ),
            ),
            _PLACES,
        ),
        Task(
            "qa5",
            "They say who gives what to whom.",
            (
                ("Ruth got the lamp. Ruth gave the lamp to Paul.", "Who gave the lamp?", "Ruth"),
                (
                    "Paul took the book. Paul handed the book to Ruth.",
                    "What did Paul give to Ruth?",
                    "book",
                ),
            ),
            frozenset({"bill", "fred", "jeff", "mary", "apple", "football", "milk"}),
        ),
    )
}
"""By name."""


def chosen_tasks(names: Sequence[str]) -> list[Task]:
    """The named tasks, in BABILong's order.

    Args:
        names: names of tasks.

    Raises:
        EdgeInfiniteError: there is none, or a name is unknown.
    """
    for name in names:
        if name not in TASKS:
            raise EdgeInfiniteError(f"unknown task {name!r}; choose of {', '.join(TASKS)}")
    if not names:
        raise EdgeInfiniteError(f"no task given; choose of {', '.join(TASKS)}")
    return [task for task in TASKS.values() if task.name in names]


def score(answer: str, *, task: Task, question: str, gold: str) -> float:
    """BABILong's exact match: 1 if the first sentence names the right answer and no other, else 0.

    The answer ends with its line, as in the prompt's examples. Labels that the question names don't
    count, nor does anything from an example's mark on.

    Args:
        answer: the generated answer.
        task: has the possible answers.
        question: the question.
        gold: the right answer.
    """
    said = answer.lower().strip().partition("\n")[0].partition(".")[0]
    for mark in ("<context>", "<example>"):
        said = said.partition(mark)[0]
    asked = question.lower()
    named = {label for label in task.labels if label in said and label not in asked}
    return float(named == {gold.lower()})
