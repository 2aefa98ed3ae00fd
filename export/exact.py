"""A checkpoint opened for exact reading, as `--engine mom` does (docs/mom.md)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.text_files import write_text_files
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.mom.reader import CHUNK
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.engines.mom_session import MomEngine, MomSession
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer


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
        dtype: `float32` or `bfloat16`; None is float32.
        chunk: tokens that a layer reads at a time.
        folder: for the KV cache's files.
        threads: CPU threads; None lets PyTorch choose.

    Raises:
        EdgeInfiniteError: the checkpoint can't be loaded or isn't supported, or the folder isn't
            one.
    """
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
    """Opens a checkpoint for a conversation that reads exactly.

    Args:
        checkpoint, options: see `load_exact`.

    Raises:
        EdgeInfiniteError: see `load_exact`.
    """
    exact = load_exact(checkpoint, **options)
    return Conversation(MomSession(exact.engine), exact.tokenizer, exact.name)
