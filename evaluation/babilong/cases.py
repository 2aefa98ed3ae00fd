"""BABILong's questions, made of bAbI's stories and books."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.hiding import fits, hide
from edgeinfinite.evaluation.babilong.options import ANSWER_LENGTH, BabilongOptions
from edgeinfinite.evaluation.babilong.stories import find_stories, read_questions
from edgeinfinite.evaluation.babilong.tasks import TASKS, chosen_tasks, score
from edgeinfinite.evaluation.questions.measure import Case
from edgeinfinite.evaluation.questions.prompts import Prompts


def babilong_cases(
    folder: Path,
    books: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    options: BabilongOptions,
) -> list[Case]:
    """The requested questions, shortest first; a seed gives the same samples in every run.

    Args:
        folder: has bAbI's test files.
        books: text files to hide the facts in.
        tokenizer: the backbone's.
        options: selects tasks, lengths and samples.

    Raises:
        EdgeInfiniteError: a file is missing or invalid, too few questions fit, or a book is too
            short.
    """
    cases: list[Case] = []
    tasks = chosen_tasks(options.tasks)
    stories = {task.name: read_questions(find_stories(folder, task.name)) for task in tasks}
    for length in sorted(set(options.lengths)):
        for task in tasks:
            prompts = Prompts(task.name, task.prompt, tokenizer, chat=False)
            questions = stories[task.name]
            number = list(TASKS).index(task.name)
            order = np.random.default_rng([options.seed, number]).permutation(len(questions))
            fitting = (index for index in order if fits(questions[index], prompts, length))
            taken = [index for index, _ in zip(fitting, range(options.samples), strict=False)]
            if len(taken) < options.samples:
                raise EdgeInfiniteError(
                    f"{length:,} tokens have room for the facts of {len(taken)} questions of "
                    f"{task.name}; give longer --lengths or fewer --samples"
                )
            for index in taken:
                question = questions[index]
                random = np.random.default_rng([options.seed, number, int(index), length])
                hidden = hide(question, books, prompts, tokenizer, length, random)
                scored = partial(score, task=task, question=question.question, gold=question.answer)
                key = {"task": task.name, "length": length, "row": question.row}
                cases.append(Case(key, hidden, prompts, ANSWER_LENGTH, scored))
    return cases


def texts_digests(folder: Path) -> dict[str, str]:
    """sha256 of each task's prompt and of its file in the folder; rows depend on both."""
    found = {}
    for name, task in TASKS.items():
        with suppress(EdgeInfiniteError):  # a requested task that is missing is an error above
            file = find_stories(folder, name).read_bytes()
            found[name] = hashlib.sha256(task.prompt.encode() + file).hexdigest()
    return found
