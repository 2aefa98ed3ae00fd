"""LongBench's rows as questions for any system."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.folder import TaskData
from edgeinfinite.evaluation.longbench.metrics import score
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.questions.measure import Case
from edgeinfinite.evaluation.questions.prompts import Prompts


def prompts_of(data: TaskData, tokenizer: PreTrainedTokenizerBase) -> Prompts:
    """The prompts of a task.

    Args:
        data: the task.
        tokenizer: the backbone's.
    """
    return Prompts(data.task.name, data.prompt, tokenizer, chat=data.task.chat)


def longbench_cases(
    tasks: Sequence[TaskData], tokenizer: PreTrainedTokenizerBase, options: LongBenchOptions
) -> list[Case]:
    """The requested rows, in the order of the tasks.

    Args:
        tasks: from `read_folder`.
        tokenizer: the backbone's.
        options: selects the rows.

    Raises:
        EdgeInfiniteError: no row's prompt is of the requested length.
    """
    cases: list[Case] = []
    for data in tasks:
        prompts = prompts_of(data, tokenizer)
        taken = 0
        for row in data.rows:
            if taken == options.rows_per_task:
                break
            if not options.takes(len(prompts.build(row).tokens)):
                continue
            taken += 1
            scored = partial(score, data.task, gold=row.answers, classes=row.classes)
            key = {"task": data.task.name, "row": row.row}
            newline = data.task.stops_at_newline
            cases.append(Case(key, row, prompts, data.answer_length, scored, newline))
    if not cases:
        raise EdgeInfiniteError(
            "no row's prompt is of such a length; see --min-tokens and --max-tokens"
        )
    return cases
