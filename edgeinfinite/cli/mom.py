"""`--engine mom`: generate, chat and serve a checkpoint itself, exactly, in little memory."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import file_option, option, positive
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling

if TYPE_CHECKING:
    from edgeinfinite.runtime_py.engines.mom_session import MomEngine
    from edgeinfinite.runtime_py.server.options import ServeOptions
    from edgeinfinite.runtime_py.server.served import Served
    from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

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


@dataclass(frozen=True)
class Exact:
    """A checkpoint, loaded for exact reading.

    Args:
        engine: for its sessions.
        tokenizer: its own.
        name: as the user knows it.
        sampling: of a conversation, unless the user says otherwise.
    """

    engine: MomEngine
    tokenizer: TextTokenizer
    name: str
    sampling: dict[str, Any]


def load_exact(
    checkpoint: str,
    *,
    dtype: str | None = None,
    chunk: int | None = None,
    folder: Path | None = None,
    threads: int | None = None,
) -> Exact:
    """Loads a checkpoint for exact reading.

    Args:
        checkpoint: as `load_backbone` takes it.
        dtype: of `DTYPES`; None is float32.
        chunk: tokens that a layer reads at a time.
        folder: for the KV cache's files.
        threads: CPU threads; None lets PyTorch choose.

    Raises:
        EdgeInfiniteError: the checkpoint can't be loaded or isn't supported, or the folder isn't
            one.
    """
    import torch

    from edgeinfinite.export.text_files import write_text_files
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.models.mom.reader import CHUNK
    from edgeinfinite.runtime_py.engines.mom_session import MomEngine
    from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

    if folder is not None and not folder.is_dir():
        raise EdgeInfiniteError(f"--offload-folder {folder} isn't a folder; create it first")
    if threads is not None:
        torch.set_num_threads(threads)
    backbone = load_backbone(checkpoint)
    model = backbone.model if dtype is None else backbone.model.to(getattr(torch, dtype))
    engine = MomEngine(model, chunk or CHUNK, folder)
    with tempfile.TemporaryDirectory() as name:
        write_text_files(backbone, Path(name))
        tokenizer = load_tokenizer(Path(name), vocabulary=engine.vocabulary)
        sampling = conversation_sampling(Path(name))
    return Exact(engine, tokenizer, backbone.name, sampling)


def open_exact(checkpoint: str, **options: Any) -> Conversation:
    """Opens a checkpoint for a conversation; see `load_exact`."""
    from edgeinfinite.runtime_py.engines.mom_session import MomSession

    exact = load_exact(checkpoint, **options)
    return Conversation(MomSession(exact.engine), exact.tokenizer, exact.name)


def open_conversation(arguments: argparse.Namespace) -> Conversation:
    """`open_exact` with the command line's options."""
    return open_exact(str(arguments.artifact), **_loading(arguments))


def served_checkpoint(arguments: argparse.Namespace, options: ServeOptions) -> Served:
    """What `serve --engine mom` serves.

    Raises:
        EdgeInfiniteError: see `load_exact`.
    """
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
