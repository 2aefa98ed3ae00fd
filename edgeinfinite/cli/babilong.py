"""`edgeinfinite evaluate babilong`: options, progress on stderr, tables, rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edgeinfinite.cli.arguments import given, lengths, names, option, positive
from edgeinfinite.cli.measuring import check_outputs, progress_bar
from edgeinfinite.cli.questions import Options, add_questions, shared, subject_of, told
from edgeinfinite.evaluation.babilong.options import BabilongOptions
from edgeinfinite.evaluation.options import CheckpointOptions

_BABILONG: Options = {
    "--data": option(
        "folder with bAbI's test files, qa1_..._test.txt",
        required=True,
        type=Path,
        metavar="FOLDER",
    ),
    "--books": option(
        "texts to hide the facts in",
        required=True,
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
    "--tasks": option("tasks", type=names, metavar="LIST"),
    "--lengths": option("lengths of the prompts in tokens", type=lengths, metavar="LIST"),
    "--samples": option("questions per task and length", type=positive, metavar="N"),
    "--seed": option("random seed", type=int, metavar="N"),
}


def add_babilong(tasks: argparse._SubParsersAction[Any], common: Options) -> None:
    """Adds the task to `evaluate`; it imports torch only when it runs.

    Args:
        tasks: `evaluate`'s.
        common: the options of all its tasks.
    """
    about = "BABILong: bAbI's facts hidden in books; exact answers and loss of the gold answer"
    options = shared(common) | _BABILONG
    add_questions(
        tasks, "babilong", about, evaluate_babilong, options, BabilongOptions, CheckpointOptions
    )


def evaluate_babilong(arguments: argparse.Namespace) -> int:
    """Runs `evaluate babilong`."""
    check_outputs(arguments)
    from edgeinfinite.evaluation.babilong.run import run_babilong
    from edgeinfinite.evaluation.babilong.table import babilong_tables

    options = BabilongOptions(**given(arguments, BabilongOptions))
    results = run_babilong(
        lambda: subject_of(arguments, options),
        arguments.data,
        arguments.books,
        options,
        arguments.json,
        progress_bar,
    )
    return told(results, babilong_tables)
