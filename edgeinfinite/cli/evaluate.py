"""`edgeinfinite evaluate ...`: options, progress on stderr, table, rows and plot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    file_option,
    given,
    lengths,
    names,
    option,
)
from edgeinfinite.cli.babilong import add_babilong
from edgeinfinite.cli.conversation import add_conversation
from edgeinfinite.cli.longbench import add_longbench
from edgeinfinite.cli.measuring import (
    CACHE_TYPE,
    DEVICE,
    STATE_MB,
    check_artifact_options,
    check_outputs,
    checkpoint_options,
    progress_bar,
)
from edgeinfinite.cli.notes import note
from edgeinfinite.cli.options import PRE_TOKENIZER
from edgeinfinite.evaluation.options import (
    DTYPES,
    CheckpointOptions,
    PasskeyOptions,
    PerplexityOptions,
)
from edgeinfinite.training.books import BOOKS

if TYPE_CHECKING:
    from edgeinfinite.evaluation.sources import Source

Options = dict[str, dict[str, Any]]

_MODEL: Options = {"--model": option("the checkpoint, as for export", default=None)}
_ARTIFACT: Options = {
    "--artifact": option("an exported artifact instead", type=Path, default=None, metavar="DIR")
}
_DATA: Options = {
    "--data": option("texts", required=True, nargs="+", type=Path, metavar="FOLDER|FILE"),
}
_TEXTS: Options = {
    "--data": option(
        "texts (default: books that come with the package)",
        nargs="+",
        type=Path,
        default=[BOOKS],
        metavar="FOLDER|FILE",
    ),
}
_COMMON: Options = {
    "--methods": option("see docs/evaluation.md for the others", type=names, metavar="LIST"),
    "--json": option("rows; an interrupted run resumes from this file", type=Path, default=None),
    "--plot": file_option("a picture of the rows", "FILE.png"),
    "--seed": option("random seed", type=int, metavar="N"),
    **PRE_TOKENIZER,
    "--dtype": option("dtype of the backbone (default: float32)", choices=DTYPES),
    "--device": DEVICE,
    "--cache-type": CACHE_TYPE,
    "--state-mb": STATE_MB,
}
_GATE: Options = {"--gate": option("trained gate", metavar="FILE|untrained|none")}
_PASSKEY: Options = {
    "--lengths": option("lengths of the prompts", type=lengths, metavar="LIST"),
    "--samples": option("texts of each length", type=int, metavar="N"),
    "--facts": option("facts planted in each text", type=int, metavar="N"),
    "--kinds": option("of facts", type=names, metavar="LIST"),
    "--questions": option(
        "plant paragraphs of a file in SQuAD's format and ask about them", metavar="FILE.json"
    ),
    "--in-turn": option(
        "ask the questions one after the other, not each from the same state",
        action="store_true",
    ),
    "--turns": option(
        "tell the facts at the start of a chat in the model's template and ask so many turns after "
        "the last one",
        type=int,
        metavar="N",
    ),
}
_THREADS: Options = {
    "--threads": option(
        "threads of an artifact's engine (default: its own)", type=cpu_threads, metavar="N"
    ),
}
_PERPLEXITY: Options = {
    "--tokens": option("length of each text", type=int, metavar="N"),
    "--documents": option("how many of the given ones (default: all)", type=int, metavar="N"),
    "--bin-length": option("tokens averaged into a row", type=int, metavar="N"),
    "--zero-gate": option("gate trained on a zero memory, for zero-memory-gate", metavar="FILE"),
}
_SUMMARY: Options = {
    "files": option("row files of several runs", nargs="+", type=Path, metavar="ROWS.json"),
    "--plot": file_option("quality by bytes of state", "FILE.png"),
}


def add_evaluate(commands: argparse._SubParsersAction[Any], geometry: Options) -> None:
    """Adds the command to the parser; it imports torch only when it runs.

    Args:
        commands: the command line's.
        geometry: `export`'s options of the cache.
    """
    about = "Compares what a model remembers of long texts with full attention and StreamingLLM."
    evaluate = commands.add_parser("evaluate", help=about, description=about)
    tasks = evaluate.add_subparsers(metavar="TASK", required=True)

    passkey = tasks.add_parser("passkey", help="facts planted in long texts, asked for at the end")
    passkey.set_defaults(command=evaluate_passkey)
    checkpoint = passkey.add_mutually_exclusive_group(required=True)
    add_options(checkpoint, _MODEL | _ARTIFACT)
    more = _TEXTS | _COMMON | _GATE | geometry | _PASSKEY | _THREADS
    add_options(passkey, more, PasskeyOptions, CheckpointOptions)

    perplexity = tasks.add_parser("perplexity", help="loss per token by position")
    perplexity.set_defaults(command=evaluate_perplexity)
    checkpoint = perplexity.add_mutually_exclusive_group(required=True)
    add_options(checkpoint, _MODEL | _ARTIFACT)
    more = _TEXTS | _COMMON | _GATE | geometry | _PERPLEXITY | _THREADS
    add_options(perplexity, more, PerplexityOptions, CheckpointOptions)

    add_longbench(tasks, _DATA | _COMMON | _GATE | geometry)
    add_babilong(tasks, _DATA | _COMMON | _GATE | geometry)
    add_conversation(tasks, _MODEL | _ARTIFACT, _TEXTS | _COMMON | geometry)

    about = "rows of several runs side by side: quality by bytes of state"
    summary = tasks.add_parser("summary", help=about, description=about)
    summary.set_defaults(command=evaluate_summary, json=None)
    add_options(summary, _SUMMARY)


def evaluate_passkey(arguments: argparse.Namespace) -> int:
    """Runs `evaluate passkey`."""
    check_outputs(arguments)
    options = PasskeyOptions(**given(arguments, PasskeyOptions))
    from edgeinfinite.evaluation.report import passkey_table, plot_passkey
    from edgeinfinite.evaluation.tasks import run_passkey

    results = run_passkey(_source(arguments), arguments.data, options, arguments.json, progress_bar)
    print(passkey_table(results.rows))
    if arguments.plot:
        plot_passkey(results.rows, arguments.plot)
    return 0


def evaluate_perplexity(arguments: argparse.Namespace) -> int:
    """Runs `evaluate perplexity`."""
    check_outputs(arguments)
    options = PerplexityOptions(**given(arguments, PerplexityOptions))
    from edgeinfinite.evaluation.report import perplexity_table, plot_perplexity
    from edgeinfinite.evaluation.tasks import run_perplexity

    results = run_perplexity(
        _source(arguments), arguments.data, options, arguments.json, progress_bar
    )
    print(perplexity_table(results.rows))
    if arguments.plot:
        plot_perplexity(results.rows, arguments.plot)
    return 0


def evaluate_summary(arguments: argparse.Namespace) -> int:
    """Runs `evaluate summary`."""
    from edgeinfinite.evaluation.summary import plot_summary, read_runs, summary_tables

    check_outputs(arguments)
    runs = read_runs(arguments.files)
    print(summary_tables(runs))
    if arguments.plot:
        plot_summary(runs, arguments.plot)
    return 0


def _source(arguments: argparse.Namespace) -> Source:
    """The artifact or the checkpoint that is measured."""
    from edgeinfinite.evaluation.sources import open_artifact, open_checkpoint

    if arguments.artifact is None:
        return open_checkpoint(checkpoint_options(arguments), note)
    check_artifact_options(arguments)
    return open_artifact(arguments.artifact, vars(arguments).get("threads"))
