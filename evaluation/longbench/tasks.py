"""The 21 tasks of LongBench (arXiv 2308.14508): their categories and metrics.

No torch here: the command line reads the names before loading torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        name: the key of its file, prompt and answer length.
        category: as LongBench groups its tables.
        language: `en`, `zh` or `code`.
        metric: a name of `metrics.METRICS`.
        chat: whether the prompt goes through the chat template; code prompts, and prompts that end
            with examples to continue, don't.
        first_line: whether only the first line of an answer counts.
        stops_at_newline: whether a newline ends the answer.
    """

    name: str
    category: str
    language: str
    metric: str
    chat: bool = True
    first_line: bool = False
    stops_at_newline: bool = False


_SINGLE, _MULTI, _SUMMARY = "single-document QA", "multi-document QA", "summarization"
_FEW_SHOT, _SYNTHETIC, _CODE = "few-shot learning", "synthetic", "code completion"

TASKS = {
    task.name: task
    for task in (
        Task("narrativeqa", _SINGLE, "en", "f1"),
        Task("qasper", _SINGLE, "en", "f1"),
        Task("multifieldqa_en", _SINGLE, "en", "f1"),
        Task("multifieldqa_zh", _SINGLE, "zh", "f1_zh"),
        Task("hotpotqa", _MULTI, "en", "f1"),
        Task("2wikimqa", _MULTI, "en", "f1"),
        Task("musique", _MULTI, "en", "f1"),
        Task("dureader", _MULTI, "zh", "rouge_zh"),
        Task("gov_report", _SUMMARY, "en", "rouge"),
        Task("qmsum", _SUMMARY, "en", "rouge"),
        Task("multi_news", _SUMMARY, "en", "rouge"),
        Task("vcsum", _SUMMARY, "zh", "rouge_zh"),
        Task("trec", _FEW_SHOT, "en", "classification", chat=False, first_line=True),
        Task("triviaqa", _FEW_SHOT, "en", "f1", chat=False, first_line=True),
        Task(
            "samsum",
            _FEW_SHOT,
            "en",
            "rouge",
            chat=False,
            first_line=True,
            stops_at_newline=True,
        ),
        Task("lsht", _FEW_SHOT, "zh", "classification", chat=False, first_line=True),
        Task("passage_count", _SYNTHETIC, "en", "count"),
        Task("passage_retrieval_en", _SYNTHETIC, "en", "retrieval"),
        Task("passage_retrieval_zh", _SYNTHETIC, "zh", "retrieval_zh"),
        Task("lcc", _CODE, "code", "code", chat=False),
        Task("repobench-p", _CODE, "code", "code", chat=False),
    )
}
"""By name, in the order of LongBench's tables."""

LANGUAGES = ("en", "zh", "code")


def chosen_tasks(names: Sequence[str]) -> list[Task]:
    """Looks tasks up, in the order of LongBench's tables.

    Args:
        names: task names, or `LANGUAGES` for all tasks of a language; empty means all tasks.

    Raises:
        EdgeInfiniteError: a name is unknown.
    """
    for name in names:
        if name not in TASKS and name not in LANGUAGES:
            known = ", ".join((*LANGUAGES, *TASKS))
            raise EdgeInfiniteError(f"unknown task {name!r}; choose from {known}")
    return [
        task for task in TASKS.values() if not names or task.name in names or task.language in names
    ]
