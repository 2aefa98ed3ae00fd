"""`edgeinfinite evaluate ...`: options, progress on stderr, table, rows and plot."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
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
from edgeinfinite.cli.longbench import add_longbench
from edgeinfinite.cli.measuring import (
    CACHE_TYPE,
    DEVICE,
    STATE_MB,
    check_artifact_options,
    check_outputs,
    load_with_setting,
    of_the_model,
    of_the_texts,
    progress_bar,
    set_dtype,
)
from edgeinfinite.cli.options import PRE_TOKENIZER
from edgeinfinite.evaluation.options import PasskeyOptions, PerplexityOptions, Setting
from edgeinfinite.training.books import BOOKS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from edgeinfinite.evaluation.results import Results
    from edgeinfinite.models.checkpoint.loading import Backbone
    from edgeinfinite.runtime_py.engines import Engine

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
    "--dtype": option("dtype of the backbone (default: float32)", choices=("float32", "bfloat16")),
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
    add_options(passkey, more, PasskeyOptions, Setting)

    perplexity = tasks.add_parser("perplexity", help="loss per token by position")
    perplexity.set_defaults(command=evaluate_perplexity)
    checkpoint = perplexity.add_mutually_exclusive_group(required=True)
    add_options(checkpoint, _MODEL | _ARTIFACT)
    more = _TEXTS | _COMMON | _GATE | geometry | _PERPLEXITY | _THREADS
    add_options(perplexity, more, PerplexityOptions, Setting)

    add_longbench(tasks, _DATA | _COMMON | _GATE | geometry)
    add_babilong(tasks, _DATA | _COMMON | _GATE | geometry)

    about = "rows of several runs side by side: quality by bytes of state"
    summary = tasks.add_parser("summary", help=about, description=about)
    summary.set_defaults(command=evaluate_summary, json=None)
    add_options(summary, _SUMMARY)


def evaluate_passkey(arguments: argparse.Namespace) -> int:
    """Runs `evaluate passkey`."""
    from edgeinfinite.evaluation.report import passkey_table, plot_passkey

    options = PasskeyOptions(**given(arguments, PasskeyOptions))
    measure = _passkey_of_model if arguments.artifact is None else _passkey_of_artifact
    results = measure(arguments, options)
    print(passkey_table(results.rows))
    if arguments.plot:
        plot_passkey(results.rows, arguments.plot)
    return 0


def _passkey_of_model(arguments: argparse.Namespace, options: PasskeyOptions) -> Results:
    from edgeinfinite.evaluation.passkey import measure_passkey, planned, tokens_to_read
    from edgeinfinite.evaluation.questions.prompts import Prompt
    from edgeinfinite.evaluation.questions.systems import model_system

    with _prepared("evaluate passkey", arguments, options) as prepared:
        backbone, documents, setting, results = prepared
        system = model_system(backbone, setting, options.methods)
        readings = planned(
            options,
            options.methods,
            lambda m, n: tokens_to_read((n, 0, m)) <= (system.longest(m) or n),
        )
        with progress_bar(sum(map(tokens_to_read, readings))) as progress:
            measure_passkey(
                readings,
                lambda method, length: system.open(method, Prompt([], 0), length),
                backbone.tokenizer,
                documents,
                options,
                results,
                progress,
            )
    return results


def _passkey_of_artifact(arguments: argparse.Namespace, options: PasskeyOptions) -> Results:
    from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD, ArtifactReader
    from edgeinfinite.evaluation.passkey import measure_passkey, planned

    engine, tokenizer, documents, results = _opened("evaluate passkey", arguments, options)
    readings = planned(options, [ARTIFACT_METHOD])
    with progress_bar(sum(length for length, _, _ in readings)) as progress:
        measure_passkey(
            readings,
            lambda method, length: ArtifactReader(engine),
            tokenizer,
            documents,
            options,
            results,
            progress,
        )
    return results


def evaluate_perplexity(arguments: argparse.Namespace) -> int:
    """Runs `evaluate perplexity`."""
    from edgeinfinite.evaluation.report import perplexity_table, plot_perplexity

    options = PerplexityOptions(**given(arguments, PerplexityOptions))
    measure = _perplexity_of_model if arguments.artifact is None else _perplexity_of_artifact
    results = measure(arguments, options)
    print(perplexity_table(results.rows))
    if arguments.plot:
        plot_perplexity(results.rows, arguments.plot)
    return 0


def _perplexity_of_model(arguments: argparse.Namespace, options: PerplexityOptions) -> Results:
    from edgeinfinite.evaluation.perplexity import measure_perplexity, planned_tokens

    with _prepared("evaluate perplexity", arguments, options) as prepared:
        backbone, documents, setting, results = prepared
        with progress_bar(planned_tokens(len(documents), options, backbone.model)) as progress:
            measure_perplexity(
                backbone.model,
                backbone.tokenizer,
                documents,
                setting,
                options,
                results,
                progress,
            )
    return results


def _perplexity_of_artifact(arguments: argparse.Namespace, options: PerplexityOptions) -> Results:
    from edgeinfinite.evaluation.perplexity import measure_artifact

    engine, tokenizer, documents, results = _opened("evaluate perplexity", arguments, options)
    count = min(len(documents), options.documents or len(documents))
    with progress_bar(count * options.tokens) as progress:
        measure_artifact(engine, tokenizer, documents, options, results, progress)
    return results


def evaluate_summary(arguments: argparse.Namespace) -> int:
    """Runs `evaluate summary`."""
    from edgeinfinite.evaluation.summary import plot_summary, read_runs, summary_tables

    check_outputs(arguments)
    runs = read_runs(arguments.files)
    print(summary_tables(runs))
    if arguments.plot:
        plot_summary(runs, arguments.plot)
    return 0


def _opened(
    command: str, arguments: argparse.Namespace, options: PasskeyOptions | PerplexityOptions
) -> tuple[Engine, PreTrainedTokenizerFast, list[Path], Results]:
    """An artifact, its tokenizer, the documents that no part of it has seen, and its rows."""
    from edgeinfinite.artifact.manifest import read_manifest
    from edgeinfinite.evaluation.artifact_reader import tokenizer_of, trained_parts
    from edgeinfinite.evaluation.documents import unseen_documents
    from edgeinfinite.evaluation.results import Results
    from edgeinfinite.runtime_py.engines import load_engine

    check_outputs(arguments)
    folder = arguments.artifact
    check_artifact_options(arguments)
    engine = load_engine(folder, threads=vars(arguments).get("threads"))
    documents = unseen_documents(arguments.data, trained_parts(folder, read_manifest(folder)))
    depends_on = {"artifact": engine.fingerprint, "geometry": engine.geometry.to_dict()}
    results = Results(arguments.json, command, depends_on | of_the_texts(options, documents))
    return engine, tokenizer_of(folder), documents, results


Prepared = tuple["Backbone", list[Path], "Setting", "Results"]


@contextmanager
def _prepared(command: str, arguments: argparse.Namespace, options: Any) -> Iterator[Prepared]:
    """Checks everything that can be checked before long work, then loads the checkpoint."""
    check_outputs(arguments)
    from edgeinfinite.evaluation.documents import unseen_documents
    from edgeinfinite.evaluation.methods import GATE_CONTROLS, check_methods
    from edgeinfinite.evaluation.questions.options import EMPTY
    from edgeinfinite.evaluation.questions.systems import NO_QUESTION_METHODS
    from edgeinfinite.evaluation.results import Results

    backbone, setting = load_with_setting(arguments)
    more = GATE_CONTROLS if command.endswith("perplexity") else (EMPTY, *NO_QUESTION_METHODS)
    check_methods(options.methods, setting, more)
    documents = unseen_documents(arguments.data, [setting.scorer, setting.gate, setting.zero_gate])
    depends_on = of_the_model(backbone, setting, arguments) | of_the_texts(options, documents)
    results = Results(arguments.json, command, depends_on)
    set_dtype(backbone, arguments)
    yield backbone, documents, setting, results
