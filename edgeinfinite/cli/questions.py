"""Shared by `evaluate longbench` and `evaluate babilong`: options, loading, the run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    method_lengths,
    names,
    option,
    positive,
)
from edgeinfinite.cli.measuring import (
    check_artifact_options,
    load_with_setting,
    of_the_model,
    progress_bar,
    set_dtype,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.questions.options import QuestionOptions

if TYPE_CHECKING:
    from edgeinfinite.evaluation.questions.measure import Case
    from edgeinfinite.evaluation.questions.systems import System
    from edgeinfinite.evaluation.results import Row

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


@dataclass(frozen=True)
class Loaded:
    """The loaded checkpoint or artifacts.

    Args:
        system: has the methods.
        depends_on: what their rows depend on.
        trained: files of trained parts, which name their training texts.
    """

    system: System
    depends_on: dict[str, Any]
    trained: list[str | None]


def load_system(arguments: argparse.Namespace, options: QuestionOptions) -> Loaded:
    """Loads the checkpoint or the artifacts.

    Args:
        arguments: have the options of `CHECKPOINT` and `QUESTIONS`.
        options: the same, parsed.
    """
    if arguments.artifact is None:
        from edgeinfinite.evaluation.questions.systems import model_system

        backbone, setting = load_with_setting(arguments)
        system = model_system(backbone, setting, options.methods)
        set_dtype(backbone, arguments)
        trained = [setting.scorer, setting.gate, setting.zero_gate]
        return Loaded(system, of_the_model(backbone, setting, arguments), trained)
    from edgeinfinite.artifact.manifest import fingerprint, read_manifest
    from edgeinfinite.evaluation.artifact_reader import trained_parts
    from edgeinfinite.evaluation.questions.systems import artifact_system

    check_artifact_options(arguments)
    folders = named_folders(arguments.artifact)
    system = artifact_system(folders, vars(arguments).get("threads"))
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    trained = [
        part for name, found in manifests.items() for part in trained_parts(folders[name], found)
    ]
    depends_on = {
        name: {"artifact": fingerprint(found), "geometry": found.geometry.to_dict()}
        for name, found in manifests.items()
    }
    return Loaded(system, {"artifacts": depends_on}, trained)


def ask(
    command: str,
    arguments: argparse.Namespace,
    options: QuestionOptions,
    loaded: Loaded,
    cases: Sequence[Case],
    tables: Callable[[Sequence[Row]], str],
) -> int:
    """Measures this process's share of the questions; the first process prints all tables.

    Args:
        command: such as `evaluate longbench`.
        arguments: have `json`.
        options: how questions are read.
        loaded: from `load_system`.
        cases: the questions.
        tables: makes the tables of the rows.
    """
    from edgeinfinite.evaluation.processes import this_share
    from edgeinfinite.evaluation.questions.measure import measure_questions, planned
    from edgeinfinite.evaluation.results import Results

    system, measures = loaded.system, sorted(options.measures)
    depends_on = loaded.depends_on | {"measures": measures, "cut_length": options.cut_length}
    if options.cut_methods:  # so that older files resume
        depends_on["cut_methods"] = dict(options.cut_methods)
    share = this_share()
    results = Results(arguments.json, command, depends_on, share)
    readings = planned(cases, system, options)
    own = share.of(readings)
    with progress_bar(sum(reading.tokens for reading in own), shown=share.index == 0) as progress:
        measure_questions(own, system, measures, results, progress)
    share.wait()
    if share.index == 0:
        places = {reading.key: place for place, reading in enumerate(readings)}
        fields = ("method", *cases[0].key)
        results.merge(lambda row: places.get(tuple(row[name] for name in fields), len(places)))
        print(tables(results.rows))
    return 0


def named_folders(given_: Sequence[str]) -> dict[str, Path]:
    """Artifacts by the name of their method, from `NAME=DIR` or `DIR`.

    Raises:
        EdgeInfiniteError: two artifacts have the same name.
    """
    from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD

    folders: dict[str, Path] = {}
    for text in given_:
        name, found, folder = text.partition("=")
        if not found or Path(text).is_dir():
            folder = text
            name = ARTIFACT_METHOD if len(given_) == 1 else Path(text).resolve().name
        if name in folders:
            raise EdgeInfiniteError(f"two artifacts are called {name}; give --artifact NAME=DIR")
        folders[name] = Path(folder)
    return folders
