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
    checkpoint_options,
    progress_bar,
)
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.options import METHODS, ConversationOptions
from edgeinfinite.evaluation.options import CheckpointOptions

if TYPE_CHECKING:
    from edgeinfinite.evaluation.sources import Source

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
    add_options(conversation, common | _CONVERSATION, ConversationOptions, CheckpointOptions)


def evaluate_conversation(arguments: argparse.Namespace) -> int:
    """Runs `evaluate conversation`."""
    check_outputs(arguments)
    options = ConversationOptions(**given(arguments, ConversationOptions))
    from edgeinfinite.evaluation.conversation.run import run_conversation
    from edgeinfinite.evaluation.report import passkey_table, plot_passkey
    from edgeinfinite.evaluation.sources import open_artifact, open_checkpoint

    if arguments.artifact is None:
        if arguments.streaming is not None:
            raise EdgeInfiniteError("--streaming is of an --artifact; a checkpoint needs none")
        source: Source = open_checkpoint(checkpoint_options(arguments), note)
        cache = None
    else:
        own = {name: value for name, value in vars(arguments).items() if name != "methods"}
        check_artifact_options(argparse.Namespace(**own))
        threads = vars(arguments).get("threads")
        source = open_artifact(arguments.artifact, threads)
        other = arguments.streaming
        cache = None if other is None else open_artifact(other, threads)
    results = run_conversation(source, cache, arguments.data, options, arguments.json, progress_bar)
    print(passkey_table(results.rows))
    if arguments.plot:
        plot_passkey(results.rows, arguments.plot)
    return 0
