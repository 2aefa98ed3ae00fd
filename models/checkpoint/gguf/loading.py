"""Loading a GGUF file into a transformers model, tensor by tensor.

transformers' own loading holds every weight twice in float32, the largest one three times: for a
file of 253 MB with a vocabulary of 262,144 that takes 3.4 GB. Here each tensor is written once. It
also passes over what it doesn't know; here the header and the tensors are used, known to change
nothing, or refused by name before a weight is read.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf.gguf_reader import ReaderTensor
from gguf.quants import dequantize
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.initialization import no_init_weights

from edgeinfinite.models.checkpoint.gguf.config import check_frequencies, read_config
from edgeinfinite.models.checkpoint.gguf.file import open_gguf
from edgeinfinite.models.checkpoint.gguf.places import Place
from edgeinfinite.models.checkpoint.gguf.tensors import check_complete, places_of
from edgeinfinite.models.checkpoint.gguf.tokenizer import read_gguf_tokenizer
from edgeinfinite.models.checkpoint.settings import CheckpointSettings, Judge
from edgeinfinite.models.weights.file_memory import FileMemory

_PART = 4 * 1024 * 1024
"""Bytes of quantized weights that are turned into floats at a time."""


@dataclass(frozen=True)
class GgufModel:
    """What a GGUF file holds.

    Args:
        model: float32.
        tokenizer: as the file describes it.
        tensors: the file's own, mapped into memory.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    tensors: Sequence[ReaderTensor]


def load_gguf(
    path: Path,
    memory: FileMemory | None = None,
    pre: str | None = None,
    judge: Judge = lambda _: None,
) -> GgufModel:
    """Loads a file's model and tokenizer.

    Args:
        path: a `.gguf` file of an architecture in `architectures`; of a split file the first
            part, with the others beside it.
        memory: for the weights; None: the process's own.
        pre: how the tokenizer cuts words, instead of what `tokenizer.ggml.pre` says.
        judge: see `Judge`.

    Raises:
        EdgeInfiniteError: the file has a key or a tensor that isn't known, or lacks one; named.
        ValueError, ImportError, OSError, KeyError, RuntimeError: the file can't be read.
    """
    file = open_gguf(path)
    config, header, ropes = read_config(file)
    places = places_of(file, header, config)
    with torch.device("meta"), no_init_weights():
        empty = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    empty.tie_weights()
    zero = check_complete(file, header, places, empty)
    words = read_gguf_tokenizer(file.readers[0], path, pre)
    ends = list(words.stop_ids)
    config.bos_token_id, config.pad_token_id = words.bos_id, words.pad_id
    config.eos_token_id = ends if len(ends) > 1 else next(iter(ends), None)
    tensors = file.tensors
    maps = memory or FileMemory()  # without one, the file's own pages are released all the same
    for reader in file.readers:
        mapped: object = reader.data.base
        if isinstance(mapped, mmap.mmap):
            maps.adopt(mapped)
        del reader
    del file, header  # the parsed header goes: with 262,144 tokens it takes 0.7 GB
    generation = GenerationConfig.from_model_config(config)
    judge(CheckpointSettings(config, words.tokenizer, generation, "its header"))
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    check_frequencies(model, ropes)
    _fill(model, tensors, places, zero, memory, maps.release)
    return GgufModel(model, words.tokenizer, tensors)


def float_parts(data: np.ndarray, kind: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """A GGUF tensor's weights as floats, some rows at a time.

    Args:
        data: blocks `[..., bytes]` uint8, or floats, as gguf's reader has them.
        kind: `gguf.GGMLQuantizationType` of the blocks.

    Yields:
        Rows of the first axis and their weights, float32.
    """
    rows = max(1, _PART // max(1, data[:1].nbytes))
    for start in range(0, len(data), rows):
        part = slice(start, min(start + rows, len(data)))
        yield part, dequantize(data[part], kind)


def _fill(
    model: PreTrainedModel,
    tensors: Sequence[ReaderTensor],
    places: Mapping[str, tuple[Place, ...]],
    zero: set[str],
    memory: FileMemory | None,
    done: Callable[[], None],
) -> None:
    """Writes the file's weights into a model whose weights are unset.

    Args:
        model: ties are made, values are not.
        tensors: of the file.
        places: where they go.
        zero: biases without a tensor.
        memory: see `load_gguf`.
        done: called after each tensor.
    """
    weights = dict(model.named_parameters()) | dict(model.named_buffers())
    begun: set[str] = set()
    for tensor, place in ((one, place) for one in tensors for place in places[one.name]):
        weight, held = weights[place.parameter], _floats(tensor, place.entry, memory)
        made = torch.from_numpy(_written_to(held, place.values(held)))
        if place.part is None:
            weight.data = made.reshape(weight.shape)
        else:
            if memory is not None and place.parameter not in begun:
                weight.data = memory.zeros(*weight.shape)
            begun.add(place.parameter)
            place.part.view(weight.data).copy_(made)
        del made, held
        done()
    for name in zero:
        weights[name].data = torch.zeros(weights[name].shape)


def _floats(tensor: Any, entry: int | None, memory: FileMemory | None) -> np.ndarray:
    """The weights of a tensor, or of one entry of its first axis, in memory of their own."""
    data = tensor.data if entry is None else tensor.data[entry]
    if data.ndim < 2:
        return np.concatenate([part for _, part in float_parts(data, tensor.tensor_type)])
    shape = tuple(int(size) for size in reversed(tensor.shape))[entry is not None :]
    values = np.empty(shape, np.float32) if memory is None else memory.zeros(*shape).numpy()
    for rows, part in float_parts(data, tensor.tensor_type):
        values[rows] = part
    return values


def _written_to(held: np.ndarray, made: np.ndarray) -> np.ndarray:
    """What was made of a tensor's values, in their place."""
    if np.shares_memory(made, held) and made.flags.c_contiguous:
        return made
    place = held.reshape(-1).reshape(made.shape)
    place[...] = made  # numpy copies first what it would overwrite
    return place
