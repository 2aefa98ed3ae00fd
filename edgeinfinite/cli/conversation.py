"""`edgeinfinite evaluate conversation`: options, progress on stderr, table, rows and plot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    given,
    lengths,
    names,
    option,
    positive,
)
from edgeinfinite.cli.measuring import (
    check_artifact_options,
    check_outputs,
    load_with_setting,
    of_the_model,
    of_the_texts,
    progress_bar,
    set_dtype,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.options import METHODS, ConversationOptions
from edgeinfinite.evaluation.options import Setting

if TYPE_CHECKING:
    from edgeinfinite.evaluation.conversation.systems import ChatSystem
    from edgeinfinite.evaluation.results import Results

Options = dict[str, dict[str, Any]]

_CONVERSATION: Options = {
    "--streaming": option(
        "with --artifact: the same checkpoint, exported with --recall-slots 0 and as many bytes",
        type=Path,
        default=None,
        metavar="DIR",
    ),
    "--methods": option(f"some of {', '.join(METHODS)}", type=names, metavar="LIST"),
    "--lengths": option("lengths of the chats", type=lengths, metavar="LIST"),
    "--samples": option("chats of each length", type=positive, metavar="N"),
    "--facts": option("facts told in each chat", type=int, metavar="N"),
    "--kinds": option("of facts", type=names, metavar="LIST"),
    "--threads": option(
        "threads of an artifact's engine (default: its own)", type=cpu_threads, metavar="N"
    ),
}


def add_conversation(
    tasks: argparse._SubParsersAction[Any], checkpoint: Options, common: Options
) -> None:
    """Adds the task to `evaluate`; it imports torch only when it runs.

    Args:
        tasks: `evaluate`'s.
        checkpoint: the options of which one is needed.
        common: the options of all its tasks.
    """
    about = "facts told in chats with tools: a state, summaries, and the newest tokens compared"
    conversation = tasks.add_parser("conversation", help=about, description=about)
    conversation.set_defaults(command=evaluate_conversation)
    add_options(conversation.add_mutually_exclusive_group(required=True), checkpoint)
    add_options(conversation, common | _CONVERSATION, ConversationOptions, Setting)


def evaluate_conversation(arguments: argparse.Namespace) -> int:
    """Runs `evaluate conversation`."""
    from edgeinfinite.evaluation.conversation.measure import measure_conversation, planned
    from edgeinfinite.evaluation.report import passkey_table, plot_passkey

    options = ConversationOptions(**given(arguments, ConversationOptions))
    check_outputs(arguments)
    opened = _of_model if arguments.artifact is None else _of_artifacts
    system, documents, results = opened(arguments, options)
    with progress_bar(sum(length for length, _, _ in planned(options))) as progress:
        measure_conversation(system, documents, options, results, progress)
    print(passkey_table(results.rows))
    if arguments.plot:
        plot_passkey(results.rows, arguments.plot)
    return 0


def _of_artifacts(
    arguments: argparse.Namespace, options: ConversationOptions
) -> tuple[ChatSystem, list[Path], Results]:
    from edgeinfinite.artifact.manifest import read_manifest
    from edgeinfinite.evaluation.artifact_reader import trained_parts
    from edgeinfinite.evaluation.conversation.systems import of_artifacts
    from edgeinfinite.evaluation.documents import unseen_documents
    from edgeinfinite.evaluation.results import Results

    if arguments.streaming is None:
        raise EdgeInfiniteError(
            "--artifact needs --streaming: the same checkpoint, exported with --recall-slots 0 and "
            "as many bytes"
        )
    check_artifact_options(_without(arguments, "methods"))
    folder = arguments.artifact
    system = of_artifacts(folder, arguments.streaming, vars(arguments).get("threads"))
    documents = unseen_documents(arguments.data, trained_parts(folder, read_manifest(folder)))
    engines = [open_().session.engine for open_ in (system.open_state, system.open_cache)]
    depends_on = {
        "artifact": engines[0].fingerprint,
        "streaming": engines[1].fingerprint,
        "geometry": engines[0].geometry.to_dict(),
        "window": system.window,
    }
    depends_on |= of_the_texts(options, documents)
    return system, documents, Results(arguments.json, "evaluate conversation", depends_on)


def _of_model(
    arguments: argparse.Namespace, options: ConversationOptions
) -> tuple[ChatSystem, list[Path], Results]:
    from edgeinfinite.evaluation.conversation.systems import of_model
    from edgeinfinite.evaluation.documents import unseen_documents
    from edgeinfinite.evaluation.results import Results

    if arguments.streaming is not None:
        raise EdgeInfiniteError("--streaming is of an --artifact; a checkpoint needs none")
    backbone, setting = load_with_setting(arguments)
    documents = unseen_documents(arguments.data, [setting.scorer, setting.gate])
    system = of_model(backbone, setting)
    depends_on = of_the_model(backbone, setting, arguments) | {"window": system.window}
    depends_on |= of_the_texts(options, documents)
    results = Results(arguments.json, "evaluate conversation", depends_on)
    set_dtype(backbone, arguments)
    return system, documents, results


def _without(arguments: argparse.Namespace, name: str) -> argparse.Namespace:
    return argparse.Namespace(**{n: v for n, v in vars(arguments).items() if n != name})
