"""Loading a GGUF file into a transformers model, tensor by tensor.

transformers' own loading holds every weight twice in float32, the largest one three times: for a
file of 253 MB with a vocabulary of 262,144 that takes 3.4 GB. Here each tensor is written once.
"""

from __future__ import annotations

import functools
import math
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf.gguf_reader import ReaderTensor
from gguf.quants import dequantize
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.initialization import no_init_weights
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
    load_gguf_checkpoint,
)

from edgeinfinite.models.file_memory import FileMemory

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


def load_gguf(path: Path, memory: FileMemory | None = None) -> GgufModel:
    """Loads a file's model and tokenizer.

    Args:
        path: a `.gguf` file of an architecture that transformers knows.
        memory: for the weights; None: the process's own.

    Raises:
        ValueError: the file lacks a weight, or has one in another shape.
        ImportError, OSError, KeyError, RuntimeError: the file can't be read.
    """
    with _cached("GGUFReader"):  # else transformers parses the file three times
        file = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        config, tokenizer = (
            AutoConfig.from_pretrained(**file),
            AutoTokenizer.from_pretrained(**file),
        )
        parsed = {"config": load_gguf_checkpoint(str(path))["config"]}
        reader = gguf.GGUFReader(str(path))
        architecture = bytes(reader.fields["general.architecture"].parts[-1]).decode()
        tensors = tuple(reader.tensors)
        mapped: object = reader.data.base
        if memory is not None and isinstance(mapped, mmap.mmap):
            memory.adopt(mapped)
        del reader
    # Here the parsed header is freed: with 262,144 tokens it takes 0.7 GB.
    # With the mark of a quantized model, transformers would refuse to save or export it.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    _check_size(config, tensors)
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=parsed["config"])
    _fill(model, tensors, processor, parsed, memory)
    return GgufModel(model, tokenizer, tensors)


def _check_size(config: PretrainedConfig, tensors: Sequence[ReaderTensor]) -> None:
    """Refuses a header that asks for a larger model than the file holds, before any of it is made.

    Raises:
        ValueError: it does.
    """
    layers = config.get_text_config().num_hidden_layers
    blocks = {tensor.name.split(".")[1] for tensor in tensors if tensor.name.startswith("blk.")}
    if layers > len(blocks):
        raise ValueError(f"its header says {layers} layers, it has tensors of {len(blocks)}")
    with torch.device("meta"), no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    wanted = sum(parameter.numel() for parameter in model.parameters())
    held = sum(math.prod(int(size) for size in tensor.shape) for tensor in tensors)
    if wanted > 2 * held:  # a file that lacks a tensor or two is refused later, by their names
        raise ValueError(f"its header asks for {wanted:,} weights, it has {held:,}")


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
    processor: TensorProcessor,
    parsed: dict[str, dict[str, Any]],
    memory: FileMemory | None,
) -> None:
    """Writes the file's weights into a model whose weights are unset.

    Args:
        model: ties are made, values are not.
        tensors: of the file.
        processor: transformers' own for this architecture.
        parsed: `config`, the file's header as transformers reads it.
        memory: see `load_gguf`.
    """
    # transformers asks for the map once per module, which takes most of the time if not cached.
    with _cached("get_tensor_name_map"):
        names = get_gguf_hf_weights_map(model, processor)
    parsed["tensors"] = {}  # where processors put tensors that they split or join
    weights = dict(model.named_parameters())
    unset = set(weights)
    for tensor in tensors:
        values = _floats(tensor, memory)
        made = processor.process(
            weights=values,
            name=tensor.name,
            tensor_key_mapping=names,
            parsed_parameters=parsed,
        )
        if made.name in names:
            _set(weights, unset, names[made.name], _written_to(values, made.weights))
        if memory is not None:
            memory.release()
    for name, values in parsed["tensors"].items():
        _set(weights, unset, name, values)
    if unset:
        raise ValueError(f"it lacks the tensor for {min(unset)}; download the file again")


def _floats(tensor: Any, memory: FileMemory | None) -> np.ndarray:
    """All weights of a tensor, in memory of their own."""
    data = tensor.data
    if data.ndim < 2:
        return np.concatenate([part for _, part in float_parts(data, tensor.tensor_type)])
    shape = tuple(int(size) for size in reversed(tensor.shape))
    values = np.empty(shape, np.float32) if memory is None else memory.zeros(*shape).numpy()
    for rows, part in float_parts(data, tensor.tensor_type):
        values[rows] = part
    return values


def _written_to(values: np.ndarray, made: Any) -> Any:
    """What a processor made of a tensor's values, in their place if it has their shape."""
    if getattr(made, "shape", None) != values.shape or np.shares_memory(made, values):
        return made
    values[...] = made
    return values


def _set(weights: dict[str, torch.nn.Parameter], unset: set[str], name: str, values: Any) -> None:
    parameter = weights.get(name)
    if parameter is None:  # a copy of a tied weight
        return
    made = torch.as_tensor(values, dtype=torch.float32).contiguous()
    if made.shape != parameter.shape:
        raise ValueError(
            f"{name} has shape {list(made.shape)}, its configuration says {list(parameter.shape)}"
        )
    parameter.data = made
    unset.discard(name)


@contextmanager
def _cached(name: str) -> Iterator[None]:
    """Caches the calls of one of gguf's functions inside the block."""
    original = getattr(gguf, name)
    setattr(gguf, name, functools.cache(original))
    try:
        yield
    finally:
        setattr(gguf, name, original)
