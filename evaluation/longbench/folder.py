"""Reads the user's own copy of LongBench: prompts, answer lengths and rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.tasks import Task
from edgeinfinite.files import read_text_file

_PROMPTS, _LENGTHS = "dataset2prompt.json", "dataset2maxlen.json"
_WHERE = "LongBench has it under LongBench/config"


@dataclass(frozen=True)
class TaskRow:
    """One question of a task.

    Args:
        row: its `_id`, or its place in the file if it has none.
        context: the long text.
        input: the question about it, may be empty.
        answers: all right answers.
        classes: names to choose from; empty unless the task is a classification.
    """

    row: str
    context: str
    input: str
    answers: tuple[str, ...]
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskData:
    """The data of one task.

    Args:
        task: the task.
        prompt: template with `{context}` and optionally `{input}`.
        answer_length: longest generated answer in tokens.
        rows: in the order of the file.
    """

    task: Task
    prompt: str
    answer_length: int
    rows: tuple[TaskRow, ...]


def read_folder(folder: Path, tasks: Sequence[Task]) -> list[TaskData]:
    """Reads the tasks for which the folder has rows.

    Args:
        folder: with `dataset2prompt.json` and `dataset2maxlen.json` (or `config/` with them), and
            `TASK.jsonl` files (or `data/` with them).
        tasks: the tasks to read.

    Raises:
        EdgeInfiniteError: the folder, a file or a field is missing, or no task has rows.
    """
    if not folder.is_dir():
        raise EdgeInfiniteError(f"{folder} isn't a folder; give the folder of your LongBench copy")
    prompts = _read_object(_find(folder, _PROMPTS))
    lengths = _read_object(_find(folder, _LENGTHS))
    found = []
    for task in tasks:
        path = next((p for p in _places(folder, "data", f"{task.name}.jsonl") if p.is_file()), None)
        if path is None:
            continue
        prompt, length = prompts.get(task.name), lengths.get(task.name)
        if not isinstance(prompt, str) or "{context}" not in prompt:
            raise EdgeInfiniteError(f"{_PROMPTS} has no prompt for {task.name}; {_WHERE}")
        if not isinstance(length, int) or length < 1:
            raise EdgeInfiniteError(f"{_LENGTHS} has no length for {task.name}; {_WHERE}")
        rows = read_rows(path)
        if rows:
            found.append(TaskData(task, prompt, length, rows))
    if not found:
        names = ", ".join(f"{task.name}.jsonl" for task in tasks)
        raise EdgeInfiniteError(f"{folder} has no rows in any of {names}")
    return found


def prompts_digest(folder: Path) -> str:
    """sha256 over prompts and answer lengths: only rows with the same ones can be compared."""
    digest = hashlib.sha256()
    for name in (_PROMPTS, _LENGTHS):
        digest.update(_find(folder, name).read_bytes())
    return digest.hexdigest()


def read_rows(path: Path) -> tuple[TaskRow, ...]:
    """The rows of one `.jsonl` file in LongBench's schema.

    Raises:
        EdgeInfiniteError: names the first line that isn't a row.
    """
    rows: list[TaskRow] = []
    for number, line in enumerate(read_text_file(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_row(json.loads(line), str(number - 1)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EdgeInfiniteError(
                f"{path}, line {number}: not a row of LongBench ({error!r}); it needs context, "
                "input and answers"
            ) from error
    return tuple(rows)


def _row(fields: dict[str, Any], place: str) -> TaskRow:
    context, question, answers = fields["context"], fields["input"], fields["answers"]
    if not isinstance(context, str) or not isinstance(question, str):
        raise ValueError("context or input is no text")
    if not isinstance(answers, list) or not all(isinstance(a, str) for a in answers) or not answers:
        raise ValueError("answers isn't a list of texts")
    classes = tuple(fields.get("all_classes") or ())
    return TaskRow(str(fields.get("_id") or place), context, question, tuple(answers), classes)


def _places(folder: Path, inside: str, name: str) -> tuple[Path, ...]:
    return folder / name, folder / inside / name, folder / "LongBench" / inside / name


def _find(folder: Path, name: str) -> Path:
    places = _places(folder, "config", name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise EdgeInfiniteError(f"{folder} has no {name}; {_WHERE}, copy it there")
    return found


def _read_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text_file(path))
    except ValueError as error:
        raise EdgeInfiniteError(f"{path} isn't JSON: {error}") from error
    if not isinstance(found, dict):
        raise EdgeInfiniteError(f"{path} isn't a JSON object; {_WHERE}")
    return found
