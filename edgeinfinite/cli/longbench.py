"""`edgeinfinite evaluate longbench`: options, progress on stderr, tables, rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import add_options, cpu_threads, given, names, option, positive
from edgeinfinite.cli.measuring import (
    check_artifact_options,
    check_outputs,
    load_with_setting,
    of_the_model,
    progress_bar,
    set_dtype,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.options import LongBenchOptions
from edgeinfinite.evaluation.options import Setting

if TYPE_CHECKING:
    from edgeinfinite.evaluation.longbench.systems import System

Options = dict[str, dict[str, Any]]

_CHECKPOINT: Options = {
    "--model": option("the checkpoint, as for export", default=None),
    "--artifact": option(
        "exported artifacts instead, each a method with this name",
        nargs="+",
        default=None,
        metavar="[NAME=]DIR",
    ),
}
_LONGBENCH: Options = {
    "--methods": option("see docs/evaluation.md for the others", type=names, metavar="LIST"),
    "--tasks": option("tasks, or en, zh or code (default: all)", type=names, metavar="LIST"),
    "--measures": option(
        "loss of the gold answers (faster), score of a generated answer",
        type=names,
        metavar="LIST",
    ),
    "--rows-per-task": option("first rows of each task (default: all)", type=positive, metavar="N"),
    "--max-tokens": option("leave out rows with longer prompts", type=positive, metavar="N"),
    "--cut-length": option(
        "cuts longer prompts in the middle, for every method (default: where a method can't read "
        "all of them)",
        type=positive,
        metavar="N",
    ),
    "--threads": option(
        "threads of an artifact's engine (default: its own)", type=cpu_threads, metavar="N"
    ),
}


def add_longbench(tasks: argparse._SubParsersAction[Any], common: Options) -> None:
    """Adds the task to `evaluate`; it imports torch only when it runs.

    Args:
        tasks: `evaluate`'s.
        common: the options of all its tasks.
    """
    about = "LongBench's tasks, read from your own copy: score and loss of the gold answer"
    parser = tasks.add_parser("longbench", help=about, description=about)
    parser.set_defaults(command=evaluate_longbench, plot=None)
    add_options(parser.add_mutually_exclusive_group(required=True), _CHECKPOINT)
    left_out = {"--data", "--plot", "--seed"}
    shared = {name: settings for name, settings in common.items() if name not in left_out}
    folder = option("LongBench's folder", required=True, type=Path, metavar="FOLDER")
    add_options(parser, {"--data": folder} | shared | _LONGBENCH, LongBenchOptions, Setting)


def evaluate_longbench(arguments: argparse.Namespace) -> int:
    """Runs `evaluate longbench`."""
    check_outputs(arguments)
    from edgeinfinite.evaluation.longbench.folder import prompts_digest, read_folder
    from edgeinfinite.evaluation.longbench.measure import measure_longbench, planned
    from edgeinfinite.evaluation.longbench.table import longbench_tables
    from edgeinfinite.evaluation.longbench.tasks import chosen_tasks
    from edgeinfinite.evaluation.results import Results

    options = LongBenchOptions(**given(arguments, LongBenchOptions))
    tasks = read_folder(arguments.data, chosen_tasks(options.tasks), options.rows_per_task)
    digest = prompts_digest(arguments.data)
    opened = _model if arguments.artifact is None else _artifacts
    system, depends_on = opened(arguments, options)
    depends_on |= {
        "measures": sorted(options.measures),
        "cut_length": options.cut_length,
        "prompts": digest,
    }
    results = Results(arguments.json, "evaluate longbench", depends_on)
    readings = planned(tasks, system, options)
    with progress_bar(sum(reading.tokens for reading in readings)) as progress:
        measure_longbench(readings, system, options, results, progress)
    print(longbench_tables(results.rows))
    return 0


def _model(
    arguments: argparse.Namespace, options: LongBenchOptions
) -> tuple[System, dict[str, Any]]:
    from edgeinfinite.evaluation.longbench.systems import model_system

    backbone, setting = load_with_setting(arguments)
    system = model_system(backbone, setting, options.methods)
    set_dtype(backbone, arguments)
    return system, of_the_model(backbone, setting, arguments)


def _artifacts(
    arguments: argparse.Namespace, options: LongBenchOptions
) -> tuple[System, dict[str, Any]]:
    del options
    from edgeinfinite.artifact.manifest import fingerprint, read_manifest
    from edgeinfinite.evaluation.longbench.systems import artifact_system

    check_artifact_options(arguments)
    folders = named_folders(arguments.artifact)
    system = artifact_system(folders, vars(arguments).get("threads"))
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    return system, {
        "artifacts": {
            name: {"artifact": fingerprint(found), "geometry": found.geometry.to_dict()}
            for name, found in manifests.items()
        }
    }


def named_folders(given_: Sequence[str]) -> dict[str, Path]:
    """Artifacts by the name of their method, from `NAME=DIR` or `DIR`.

    Raises:
        EdgeInfiniteError: two artifacts have the same name.
    """
    from edgeinfinite.evaluation.artifact import ARTIFACT_METHOD

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
