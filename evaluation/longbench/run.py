"""`longbench`, whole: from a subject and LongBench's folder to rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgeinfinite.evaluation.longbench.cases import longbench_cases
from edgeinfinite.evaluation.longbench.folder import prompts_digest, read_folder
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
from edgeinfinite.evaluation.questions.run import Subject, asked
from edgeinfinite.evaluation.results import Results, Shown, unseen


def run_longbench(
    opened: Callable[[], Subject],
    folder: Path,
    options: LongBenchOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results | None:
    """Asks LongBench's questions.

    Args:
        opened: loads what is asked, after the folder has been read.
        folder: your copy of LongBench.
        options: which tasks and rows, and how they are read.
        rows, shown: see `asked`.

    Returns:
        See `asked`.

    Raises:
        EdgeInfiniteError: the folder isn't one, or the file holds other rows.
    """
    tasks, digest = read_folder(folder, chosen_tasks(options.tasks)), prompts_digest(folder)
    subject = opened().of_texts(prompts=digest)
    cases = longbench_cases(tasks, subject.system.tokenizer, options)
    return asked("longbench", subject, cases, options, rows, shown)
