"""`--engine mom`: generate, chat and serve a checkpoint itself, exactly, in little memory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import file_option, option, positive
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions

if TYPE_CHECKING:
    from edgeinfinite.runtime_py.server.options import ServeOptions
    from edgeinfinite.runtime_py.server.served import Served

ENGINES = ("artifact", "mom")
DTYPES = ("float32", "bfloat16")
_OF_SAVED_STATES = ("session", "from_", "cache_mb", "cache_dir", "cache_dir_mb")

MOM = {
    "--engine": option(
        "artifact reads any length in a fixed state (default); mom is exact attention on a "
        "checkpoint, ID|FOLDER|FILE.gguf in place of DIR, with its KV cache on disk",
        choices=ENGINES,
        default=ENGINES[0],
    ),
    "--dtype": option("mom: weights and cache (default: float32)", choices=DTYPES, default=None),
    "--chunk": option("mom: tokens that a layer reads at a time", type=positive, metavar="N"),
    "--offload-folder": file_option(
        "mom: where the KV cache is kept; best on a fast disk (default: $TMPDIR or /var/tmp)", "DIR"
    ),
}


def check_engine(arguments: argparse.Namespace) -> None:
    """Refuses options that the chosen engine doesn't have.

    Raises:
        EdgeInfiniteError: names the option.
    """
    if arguments.engine == "mom":
        for name in _OF_SAVED_STATES:
            if getattr(arguments, name, None) is not None:
                option_name = name.rstrip("_").replace("_", "-")
                raise EdgeInfiniteError(
                    f"--{option_name} is for a state of fixed size, which --engine mom has "
                    "not: leave one of them out"
                )
        return
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("dtype", "chunk", "offload_folder")
        if getattr(arguments, name, None) is not None
    ]
    if given:
        raise EdgeInfiniteError(f"{given[0]} belongs to --engine mom; add it, or leave this out")


def open_conversation(arguments: argparse.Namespace) -> Conversation:
    """`open_exact` with the command line's options."""
    from edgeinfinite.export.exact import open_exact

    return open_exact(str(arguments.artifact), **_loading(arguments))


def served_checkpoint(arguments: argparse.Namespace, options: ServeOptions) -> Served:
    """What `serve --engine mom` serves.

    Raises:
        EdgeInfiniteError: see `load_exact`.
    """
    from edgeinfinite.export.exact import load_exact
    from edgeinfinite.runtime_py.engines.mom_session import MomSession
    from edgeinfinite.runtime_py.server.exact_states import ExactStates
    from edgeinfinite.runtime_py.server.served import Served

    exact = load_exact(str(arguments.artifact), **_loading(arguments))
    MomSession(exact.engine).close()  # refuses an unsupported model now
    return Served(
        model=Path(exact.name).name,
        fingerprint=f"{exact.name} {arguments.dtype or DTYPES[0]} exact",
        tokenizer=exact.tokenizer,
        states=ExactStates(exact.engine, options.parallel),
        sampling=SamplingOptions(**exact.sampling),
        about={
            "backbone": exact.name,
            "chat": exact.tokenizer.has_chat_template,
            "segment_length": exact.engine.chunk,
            "state_bytes": None,  # it grows with the text
            "full_attention_bytes_per_token": exact.engine.bytes_per_token,
        },
    )


def _loading(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "dtype": arguments.dtype,
        "chunk": getattr(arguments, "chunk", None),
        "folder": arguments.offload_folder,
        "threads": arguments.threads,
    }
