"""Shared by `evaluate longbench` and `evaluate babilong`: options, loading, tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    method_lengths,
    names,
    option,
    positive,
)
from edgeinfinite.cli.measuring import check_artifact_options, checkpoint_options
from edgeinfinite.cli.notes import note
from edgeinfinite.evaluation.questions.options import QuestionOptions

if TYPE_CHECKING:
    from edgeinfinite.evaluation.questions.run import Subject
    from edgeinfinite.evaluation.results import Results, Row

Options = dict[str, dict[str, Any]]

CHECKPOINT: Options = {
    "--model": option("the checkpoint, as for export", default=None),
    "--artifact": option(
        "exported artifacts instead, each a method with this name",
        nargs="+",
        default=None,
        metavar="[NAME=]DIR",
    ),
}
QUESTIONS: Options = {
    "--methods": option("see docs/evaluation.md for the others", type=names, metavar="LIST"),
    "--measures": option(
        "loss of the gold answers (faster), score of a generated answer",
        type=names,
        metavar="LIST",
    ),
    "--cut-length": option(
        "cuts longer prompts in the middle, for every method (default: where a method can't read "
        "all of them)",
        type=positive,
        metavar="N",
    ),
    "--cut-methods": option(
        "the same for the named methods only", type=method_lengths, metavar="METHOD=N,..."
    ),
    "--threads": option(
        "threads of an artifact's engine (default: its own)", type=cpu_threads, metavar="N"
    ),
}
_NOT_ASKED = {"--data", "--plot", "--seed"}
"""Options of `evaluate`'s other tasks that these don't share."""


def add_questions(
    tasks: argparse._SubParsersAction[Any],
    name: str,
    about: str,
    command: Callable[[argparse.Namespace], int],
    options: Options,
    *read_by: type[Any],
) -> None:
    """Adds a task to `evaluate` whose questions a checkpoint or artifacts answer.

    Args:
        tasks: `evaluate`'s.
        name: the task's.
        about: its help.
        command: runs it.
        options: of all tasks, then the task's own, which win.
        read_by: dataclasses that have the defaults.
    """
    parser = tasks.add_parser(name, help=about, description=about)
    parser.set_defaults(command=command, plot=None)
    add_options(parser.add_mutually_exclusive_group(required=True), CHECKPOINT)
    add_options(parser, options, *read_by)


def shared(common: Options) -> Options:
    """Options of all tasks of `evaluate` that these tasks share, and those of their own."""
    return {k: settings for k, settings in common.items() if k not in _NOT_ASKED} | QUESTIONS


def subject_of(arguments: argparse.Namespace, options: QuestionOptions) -> Subject:
    """Loads the checkpoint or the artifacts.

    Args:
        arguments: have the options of `CHECKPOINT` and `QUESTIONS`.
        options: the same, parsed.
    """
    from edgeinfinite.evaluation.questions import run
    from edgeinfinite.evaluation.sources import open_checkpoint

    if arguments.artifact is None:
        source = open_checkpoint(checkpoint_options(arguments), note)
        return run.checkpoint_subject(source, options.methods)
    check_artifact_options(arguments)
    folders = run.named_folders(arguments.artifact)
    return run.artifacts_subject(folders, vars(arguments).get("threads"))


def told(results: Results | None, tables: Callable[[Sequence[Row]], str]) -> int:
    """Prints the tables of all rows, in the process that has them."""
    if results is not None:
        print(tables(results.rows))
    return 0
