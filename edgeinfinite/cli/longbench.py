"""`edgeinfinite evaluate longbench`: options, progress on stderr, tables, rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edgeinfinite.cli.arguments import given, names, option, positive
from edgeinfinite.cli.measuring import check_outputs, progress_bar
from edgeinfinite.cli.questions import Options, add_questions, shared, subject_of, told
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.options import CheckpointOptions

_LONGBENCH: Options = {
    "--tasks": option("tasks, or en, zh or code (default: all)", type=names, metavar="LIST"),
    "--rows-per-task": option("first rows of each task (default: all)", type=positive, metavar="N"),
    "--min-tokens": option("leave out rows with shorter prompts", type=positive, metavar="N"),
    "--max-tokens": option("leave out rows with longer prompts", type=positive, metavar="N"),
}


def add_longbench(tasks: argparse._SubParsersAction[Any], common: Options) -> None:
    """Adds the task to `evaluate`; it imports torch only when it runs.

    Args:
        tasks: `evaluate`'s.
        common: the options of all its tasks.
    """
    about = "LongBench's tasks, read from your own copy: score and loss of the gold answer"
    folder = option("LongBench's folder", required=True, type=Path, metavar="FOLDER")
    options = {"--data": folder} | shared(common) | _LONGBENCH
    read_by = (LongBenchOptions, CheckpointOptions)
    add_questions(tasks, "longbench", about, evaluate_longbench, options, *read_by)


def evaluate_longbench(arguments: argparse.Namespace) -> int:
    """Runs `evaluate longbench`."""
    check_outputs(arguments)
    from edgeinfinite.evaluation.longbench.run import run_longbench
    from edgeinfinite.evaluation.longbench.table import longbench_tables

    options = LongBenchOptions(**given(arguments, LongBenchOptions))
    results = run_longbench(
        lambda: subject_of(arguments, options),
        arguments.data,
        options,
        arguments.json,
        progress_bar,
    )
    return told(results, longbench_tables)
