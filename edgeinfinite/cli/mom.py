"""`--engine mom`: generate and chat with a checkpoint itself, exactly, in little memory."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from edgeinfinite.cli.arguments import file_option, option, positive
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.conversation import Conversation

ENGINES = ("artifact", "mom")
DTYPES = ("float32", "bfloat16")

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
        for name in ("session", "from_"):
            if getattr(arguments, name, None) is not None:
                raise EdgeInfiniteError(
                    f"--{name.rstrip('_')} is for a state of fixed size, which --engine mom has "
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


def open_exact(
    checkpoint: str,
    *,
    dtype: str | None = None,
    chunk: int | None = None,
    folder: Path | None = None,
    threads: int | None = None,
) -> Conversation:
    """Opens a checkpoint for exact reading.

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
    from edgeinfinite.models.loading import load_backbone
    from edgeinfinite.models.mom.reader import CHUNK
    from edgeinfinite.runtime_py.engines.mom_session import MomEngine, MomSession
    from edgeinfinite.runtime_py.tokenizer import load_tokenizer

    if folder is not None and not folder.is_dir():
        raise EdgeInfiniteError(f"--offload-folder {folder} isn't a folder; create it first")
    if threads is not None:
        torch.set_num_threads(threads)
    backbone = load_backbone(checkpoint)
    model = backbone.model if dtype is None else backbone.model.to(getattr(torch, dtype))
    engine = MomEngine(model, chunk or CHUNK, folder)
    session = MomSession(engine)
    with tempfile.TemporaryDirectory() as name:
        write_text_files(backbone, Path(name))
        tokenizer = load_tokenizer(Path(name), vocabulary=engine.vocabulary)
    return Conversation(session, tokenizer, backbone.name)


def open_conversation(arguments: argparse.Namespace) -> Conversation:
    """`open_exact` with the command line's options."""
    return open_exact(
        str(arguments.artifact),
        dtype=arguments.dtype,
        chunk=getattr(arguments, "chunk", None),
        folder=arguments.offload_folder,
        threads=arguments.threads,
    )
