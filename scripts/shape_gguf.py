"""Writes a checkpoint's weights as a GGUF file, for llama.cpp beside an artifact of them.

    python scripts/shape_gguf.py FOLDER FILE.gguf --kind Q4_0 --embedding-kind Q8_0

LFM2, Qwen3.5, dense Granite 4 H and dense Gemma 4, tensor by tensor: it needs the memory of one
tensor. Names and layouts are those that reading goes by, turned round, and the file is read back:
its settings must be the checkpoint's, and no tensor may be missing. Its tokens have no text, since
`bench` gives llama.cpp token ids. A file to chat with is llama.cpp's own converter's to write.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import quantize
from safetensors import safe_open
from shape_gguf_keys import FAMILIES, FREQUENCIES, add_keys, divisors
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.architectures import ARCHITECTURES
from edgeinfinite.models.checkpoint.gguf.config import read_config
from edgeinfinite.models.checkpoint.gguf.file import open_gguf
from edgeinfinite.models.checkpoint.gguf.places import LOG_OF_MINUS, Place
from edgeinfinite.models.checkpoint.gguf.tensors import check_complete, named_places, places_of
from edgeinfinite.models.checkpoint.stored_loading import tensor_files

KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
_TABLE = "token_embd.weight"
_FLOATS = ("conv.weight", "conv1d.weight", "ssm_norm.weight", "ssm_a", "ssm_d")
"""Endings of tensors with two axes that llama.cpp has as float32."""
_NOT_COMPUTED_WITH = {
    *("_name_or_path", "architectures", "dtype", "transformers_version", "initializer_range"),
    *("bos_token_id", "eos_token_id", "pad_token_id"),  # the tokenizer's
    *("mrope_section", "mrope_interleaved"),  # a text has one position in all grids
    *("use_cache", "mamba_chunk_size", "num_experts_per_tok"),
    *("intermediate_size", "block_auto_adjust_ff_dim"),  # widths are those of the tensors
}
"""Settings that a file needn't say."""
_ROPE = "position_embedding_type"
_ROWS = 8192
"""Of a matrix, turned into floats at a time: half of Gemma 4's weights are one table."""


@dataclass(frozen=True)
class _Tensor:
    """One of the file's.

    Args:
        name: in the file.
        shape: rows first.
        kind: of its numbers.
        parts: its numbers, some rows at a time, float32.
    """

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    parts: Callable[[], Iterator[np.ndarray]]

    def packed(self) -> np.ndarray:
        """As they lie in the file."""
        return np.concatenate([quantize(part, self.kind) for part in self.parts()])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="with config.json and safetensors")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="Q4_0", help="of the matrices")
    parser.add_argument(
        "--embedding-kind", choices=KINDS, default="Q8_0", help="of the table, the LM head's too"
    )
    options = parser.parse_args()
    kinds = (GGMLQuantizationType[kind] for kind in (options.kind, options.embedding_kind))
    write(options.folder, options.file, *kinds)


def write(
    folder: Path, file: Path, kind: GGMLQuantizationType, embedding_kind: GGMLQuantizationType
) -> None:
    """Writes the file.

    Args:
        folder: of a checkpoint with tied embeddings.
        file: to write.
        kind: of the matrices, and of the embeddings by layer, as `--quantize int4` has them; norms,
            convolutions and what an SSM has beside them are float32.
        embedding_kind: of the table of tokens, which is the LM head.

    Raises:
        EdgeInfiniteError: it is of another family, or holds a tensor or a setting that the format
            has no place for.
    """
    config = AutoConfig.from_pretrained(folder)
    if config.model_type not in FAMILIES:
        raise EdgeInfiniteError(
            f"{folder} is a {config.model_type}; {', '.join(FAMILIES)} are written"
        )
    architecture, _ = FAMILIES[config.model_type]
    writer = GGUFWriter(file, architecture)
    with ExitStack() as stack:
        held = _opened(folder, stack)
        tensors = list(_tensors(architecture, config, held, kind, embedding_kind))
        inner = next(tensor.shape[0] for tensor in tensors if tensor.name == "blk.0.ffn_up.weight")
        add_keys(writer, config, inner)
        for tensor in tensors:
            block, size = GGML_QUANT_SIZES[tensor.kind]
            count = int(np.prod(tensor.shape)) // block * size
            writer.add_tensor_info(
                tensor.name, tensor.shape, np.dtype(np.float32), count, raw_dtype=tensor.kind
            )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for tensor in tensors:
            writer.write_tensor_data(tensor.packed())
    writer.close()
    _check(file, config)


def _opened(folder: Path, stack: ExitStack) -> dict[str, Any]:
    """The checkpoint's tensors by name, each still in its file."""
    where = tensor_files(str(folder), "main")
    files = {path: stack.enter_context(safe_open(path, "pt")) for path in set(where.values())}
    return {name: files[path].get_slice(name) for name, path in where.items()}


def _tensors(
    architecture: str,
    config: PretrainedConfig,
    held: Mapping[str, Any],
    kind: GGMLQuantizationType,
    embedding_kind: GGMLQuantizationType,
) -> Iterator[_Tensor]:
    """What the file is to hold, in order; see `write`."""
    row, blocks, written = ARCHITECTURES[architecture], config.num_hidden_layers, set()
    floats = GGMLQuantizationType.F32
    for name, places in named_places(row, config, blocks).items():
        if not places or places[0].parameter not in held:
            continue  # what is missing is found when the file is read
        if len(places) > 1:
            raise EdgeInfiniteError(f"{name} is of several parameters, which isn't written")
        place = places[0]
        written.add(place.parameter)
        shape = _shape(name, place, held[place.parameter].get_shape(), config)
        chosen = embedding_kind if name == _TABLE else kind
        if len(shape) < 2 or name.endswith(_FLOATS):
            chosen = floats
        parts = _parts(place, held[place.parameter], shape)
        yield _Tensor(name, shape, chosen, parts)
    if others := sorted(held.keys() - written):
        raise EdgeInfiniteError(f"the checkpoint has the tensor {others[0]}, which has no place")
    if FREQUENCIES in row.rope_tensors:
        angles = divisors(config)
        yield _Tensor(f"{FREQUENCIES}.weight", angles.shape, floats, lambda: iter([angles]))


def _shape(name: str, place: Place, found: list[int], config: PretrainedConfig) -> tuple[int, ...]:
    """A tensor's shape, of its parameter's."""
    if place.part is not None:
        found = [size // (place.part.of if axis == place.part.axis else 1)
                 for axis, size in enumerate(found)]  # fmt: skip
    if name.endswith(("ssm_a", "ssm_d")) and config.model_type == "granitemoehybrid":
        return (found[0], 1)
    if name.endswith("ssm_norm.weight") and config.model_type == "granitemoehybrid":
        return (config.mamba_n_groups, found[0] // config.mamba_n_groups)
    if "conv" in name and len(found) == 3:  # [channels, 1, kernel]
        return (found[0], found[2])
    return tuple(found)


def _parts(place: Place, held: Any, shape: tuple[int, ...]) -> Callable[[], Iterator[np.ndarray]]:
    """A tensor's numbers, float32: in one piece, if they aren't in its parameter's order."""

    def whole() -> Iterator[np.ndarray]:
        values = held[:]
        if place.part is not None:
            values = place.part.view(values)
        yield np.ascontiguousarray(_turned(place, values.float().numpy()).reshape(shape))

    def pieces() -> Iterator[np.ndarray]:
        for start in range(0, shape[0], _ROWS):
            yield held[start : start + _ROWS].float().numpy()

    changed = place.heads or place.less or place.part or place.turn or place.order is not None
    return whole if changed or list(shape) != held.get_shape() else pieces


def _turned(place: Place, values: np.ndarray) -> np.ndarray:
    """`Place.values` the other way: a tensor's numbers, of its parameter's."""
    if place.less:
        values = values + np.float32(place.less)
    if place.order is not None:
        values = values.take(np.argsort(place.order), place.axis)
    if place.turn is LOG_OF_MINUS:
        values = -np.exp(values)
    if place.heads:
        halves = values.reshape(place.heads, 2, -1, *values.shape[1:])  # [H, 2, D / 2, ...]
        values = halves.swapaxes(1, 2).reshape(values.shape)
    return values


def _check(path: Path, config: PretrainedConfig) -> None:
    """Reads the file's header and tensors as `export` does, but no weight.

    Raises:
        EdgeInfiniteError: it lacks a tensor, or has another setting than the checkpoint.
    """
    file = open_gguf(path)
    found, header, _ = read_config(file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(found)
    check_complete(file, header, places_of(file, header, found), model)
    read, wanted = found.to_dict(), config.to_dict()
    for settings in (read, wanted):  # without RoPE it may be "nope" or none at all
        if settings.get(_ROPE) != "rope":
            settings[_ROPE] = None
    for name in sorted(wanted.keys() - _NOT_COMPUTED_WITH):
        if not _alike(read.get(name), wanted[name]):
            raise EdgeInfiniteError(
                f"{config.model_type}'s {name} is {wanted[name]}, the file says {read.get(name)}"
            )


def _alike(read: Any, wanted: Any) -> bool:
    """Whether two settings are the same, numbers as float32."""
    if isinstance(wanted, dict) and isinstance(read, dict):
        names = (read.keys() | wanted.keys()) - _NOT_COMPUTED_WITH
        return all(_alike(read.get(name), wanted.get(name)) for name in names)
    if isinstance(wanted, float | int) and isinstance(read, float | int):
        return bool(np.float32(read) == np.float32(wanted))
    return bool(read == wanted)


if __name__ == "__main__":
    main()
