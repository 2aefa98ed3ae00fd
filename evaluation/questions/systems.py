"""What answers questions: the methods of one checkpoint, or exported artifacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.artifact_reader import ArtifactReader, tokenizer_of
from edgeinfinite.evaluation.methods import ABLATIONS, Reader, check_methods, configuration
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.prompt_compression import COMPRESSIONS, CompressedPromptReader
from edgeinfinite.evaluation.questions.options import EMPTY
from edgeinfinite.evaluation.questions.prompts import Prompt
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

_UNSEEN = "-unseen"
"""Suffix of a method that compresses before it sees the question."""

_COMPRESSED = tuple(name + end for name in COMPRESSIONS for end in ("", _UNSEEN))

NO_QUESTION_METHODS = tuple(COMPRESSIONS)
"""Beside `METHODS`, where a prompt isn't known to have a question at its end."""

QUESTION_METHODS = (
    EMPTY,
    *_COMPRESSED,
    *("memory-off", "untrained-gate", "trained-gate"),
    *ABLATIONS,
)
"""Beside `METHODS`."""


@dataclass(frozen=True)
class System:
    """The measured methods.

    Args:
        methods: their names, in order.
        tokenizer: of all of them.
        stop_ids: tokens that end an answer.
        open: opens a reader for a method, a prompt and the number of tokens that may follow it.
        longest: most tokens that a method can read in one text; None for no limit.
    """

    methods: Sequence[str]
    tokenizer: PreTrainedTokenizerBase
    stop_ids: frozenset[int]
    open: Callable[[str, Prompt, int], TextReader]
    longest: Callable[[str], int | None]


def model_system(backbone: Backbone, setting: Setting, methods: Sequence[str]) -> System:
    """The methods of a checkpoint in PyTorch.

    Args:
        backbone: its model is attached again for every text.
        setting: what the methods are built from.
        methods: some of `METHODS` and `QUESTION_METHODS`.

    Raises:
        EdgeInfiniteError: a method is unknown, or lacks what it needs.
    """
    check_methods(methods, setting, QUESTION_METHODS)
    model = backbone.model
    if setting.cache_type == INT8_CACHE and set(methods) & set(_COMPRESSED):
        raise EdgeInfiniteError("snapkv and pyramidkv have no int8 cache; choose float16")
    if setting.geometry.policy != "reencode" and (own := set(methods) & set(ABLATIONS)):
        raise EdgeInfiniteError(f"{min(own)} is of the paper's scheme; give --policy reencode")
    positions = architecture_of(model).positions

    def open_reader(method: str, prompt: Prompt, room: int) -> TextReader:
        if method in _COMPRESSED:
            return _compressed(model, method, setting, prompt, room)
        tokens = len(prompt.tokens) + room
        return Reader(model, "full" if method == EMPTY else method, setting, tokens)

    def longest(method: str) -> int | None:
        return positions if method in (EMPTY, "full", *_COMPRESSED) else None

    ends = model.generation_config.eos_token_id if model.generation_config else None
    stop_ids = {*(ends if isinstance(ends, list) else [ends]), backbone.tokenizer.eos_token_id}
    stops = frozenset(int(token) for token in stop_ids if token is not None)
    return System(methods, backbone.tokenizer, stops, open_reader, longest)


def _compressed(
    model: PreTrainedModel, method: str, setting: Setting, prompt: Prompt, room: int
) -> CompressedPromptReader:
    """A reader with as many slots as `edgeinfinite` when the answer begins.

    An empty prompt isn't known yet: the reader's `end_prompt` says where it ends.
    """
    attach(model, configuration("full", setting, len(prompt.tokens) + room))
    compression = COMPRESSIONS[method.removesuffix(_UNSEEN)]
    geometry = setting.geometry
    slots = geometry.capacity - geometry.most_slots + geometry.average_slots
    # Where a layer slides, `edgeinfinite` has room for a segment beside the window; here it hasn't.
    slides = [window > 0 for window in architecture_of(model).sliding_windows]
    if not all(slides):
        slots += round(geometry.segment_length * slides.count(True) / slides.count(False))
    seen = prompt.question if method.endswith(_UNSEEN) else len(prompt.tokens)
    # The text after the context isn't compressed; its slots are taken from the context's.
    slots = max(slots - (len(prompt.tokens) - seen), compression.window + 1)
    return CompressedPromptReader(
        model, compression, slots, seen or None, getattr(torch, setting.cache_type)
    )


def artifact_system(folders: Mapping[str, Path], threads: int | None = None) -> System:
    """Exported artifacts of one backbone, and `empty`, read by the one with the longest cache.

    Args:
        folders: by the method's name.
        threads: of each engine; None for the engine's default.

    Raises:
        EdgeInfiniteError: an artifact is damaged, or the backbones differ.
    """
    engines: dict[str, Engine] = {
        name: load_engine(folder, threads=threads) for name, folder in folders.items()
    }
    backbones = {name: read_manifest(folder).backbone for name, folder in folders.items()}
    first = next(iter(folders))
    for name, backbone in backbones.items():
        if backbone != backbones[first]:
            raise EdgeInfiniteError(
                f"{name} and {first} have different backbones; measure one at a time"
            )
    engines[EMPTY] = max(engines.values(), key=lambda engine: engine.geometry.capacity)
    folder = folders[first]
    return System(
        (EMPTY, *folders),
        tokenizer_of(folder),
        load_tokenizer(folder).stop_ids,
        lambda method, prompt, room: ArtifactReader(engines[method]),
        lambda method: None,
    )
