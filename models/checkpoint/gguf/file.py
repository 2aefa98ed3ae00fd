"""Opening a GGUF file, with the other parts of a split one, and its header's values."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.gguf_reader import ReaderField, ReaderTensor
from gguf.quants import dequantize

from edgeinfinite.errors import EdgeInfiniteError

_PART_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_NEWEST_QUANTIZATION = 2
"""The `general.quantization_version` whose blocks gguf's package decodes; older ones differ."""


class _Text(bytes):
    """A string of an array; gguf's fields ask for its bytes as an array's."""

    __slots__ = ()

    def tobytes(self) -> bytes:
        return self


class Reader(gguf.GGUFReader):
    """gguf's reader, which names what is wrong with a file."""

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        start, kind = int(offset), np.dtype(dtype)
        end = start + int(count) * kind.itemsize
        if end > len(self._bytes):
            raise self._cut_off()
        return self._bytes[start:end].view(kind.newbyteorder(override_order or self.byte_order))

    @cached_property
    def _bytes(self) -> np.ndarray:
        """The file as a plain array: a vocabulary has half a million slices, and memmap's own take
        several times as long.
        """
        return self.data.view(np.ndarray)

    def _get_field_parts(
        self, orig_offs: int, raw_type: int
    ) -> tuple[int, list[Any], list[int], list[gguf.GGUFValueType]]:
        """As the base class, but numbers of an array are one part, and strings are bytes.

        An array of each is what takes the time, and the memory, of a vocabulary of 262,144.
        """
        array = gguf.GGUFValueType.ARRAY
        if raw_type != array:
            found: Any = super()._get_field_parts(orig_offs, raw_type)
            return found
        kind, count = self._get(orig_offs, np.uint32), self._get(orig_offs + 4, np.uint64)
        item, start = gguf.GGUFValueType(kind[0]), orig_offs + 12
        if item == gguf.GGUFValueType.STRING:
            texts, end = self._strings(start, int(count[0]))
            places = list(range(2, 2 + len(texts)))
            return end - orig_offs, [kind, count, *texts], places, [array, item]
        if item not in self.gguf_scalar_to_np:
            raise ValueError("its header has an array of arrays, which no model needs")
        numbers = self._get(start, self.gguf_scalar_to_np[item], int(count[0]))
        return 12 + numbers.nbytes, [kind, count, numbers], [2], [array, item]

    def _strings(self, start: int, count: int) -> tuple[list[_Text], int]:
        """So many strings from a byte on, and the byte after them."""
        little = self.endianess == gguf.GGUFEndian.LITTLE
        size_at = struct.Struct("<Q" if little else ">Q").unpack_from
        view, at = memoryview(self._bytes.data), start
        found: list[_Text] = []
        for _ in range(count):
            end = at + 8
            if end <= len(view):
                at, end = end, end + size_at(view, at)[0]
            if end > len(view):
                raise self._cut_off()
            found.append(_Text(view[at:end]))
            at = end
        return found, at

    def _cut_off(self) -> ValueError:
        return ValueError(f"it ends at byte {len(self._bytes):,}; download the file again")

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        if self.endianess != gguf.GGUFEndian.LITTLE:
            raise ValueError("it is big-endian; convert it with gguf-convert-endian FILE little")
        for field in fields:
            _check_type(field.name, int(field.parts[4][0]))
        super()._build_tensors(start_offs, fields)


@dataclass(frozen=True)
class GgufFile:
    """An open file, or the parts of a split one.

    Args:
        path: of the (first) file.
        readers: of each part; the first has the header.
        values: of the header, but those of `tokenizer.*`, which may be long.
        tensors: of all parts.
    """

    path: Path
    readers: tuple[Reader, ...]
    values: Mapping[str, Any]
    tensors: tuple[ReaderTensor, ...]

    @property
    def tokens(self) -> int:
        """How many tokens the vocabulary lists."""
        field = self.readers[0].fields.get("tokenizer.ggml.tokens")
        return 0 if field is None else len(field.data)


def open_gguf(path: Path) -> GgufFile:
    """Opens a file; of a split one, all parts, which lie beside each other.

    Args:
        path: a `.gguf` file; of a split one, the first part.

    Raises:
        EdgeInfiniteError: a part is missing, or it isn't the first that was given; the file isn't a
            model's.
        ValueError: the file is damaged, or has tensors of an unknown type.
    """
    reader = Reader(str(path))
    values = _values(reader)
    readers = [reader, *(_part(part, number) for number, part in _other_parts(path, values))]
    tensors = tuple(tensor for part in readers for tensor in part.tensors)
    names = [tensor.name for tensor in tensors]
    if twice := {name for name in names if names.count(name) > 1} if len(readers) > 1 else set():
        raise refusal(path, f"its parts have the tensor {min(twice)} twice; download them again")
    wanted = values.get("split.tensors.count", len(tensors))
    if wanted != len(tensors):
        raise refusal(path, f"its parts have {len(tensors)} tensors of {wanted}; download them all")
    return GgufFile(path, tuple(readers), values, tensors)


def refusal(path: Path, reason: str) -> EdgeInfiniteError:
    """The error for a file that isn't taken, with its name."""
    return EdgeInfiniteError(f"model {path.name}: {reason}")


def _check_type(name: str, number: int) -> None:
    try:
        kind = gguf.GGMLQuantizationType(number)
        block = gguf.GGML_QUANT_SIZES[kind][1]
        dequantize(np.zeros((1, block), np.uint8), kind)
    except (ValueError, KeyError, NotImplementedError):
        known = {member.value: member.name for member in gguf.GGMLQuantizationType}
        raise ValueError(
            f"the tensor {name} is stored as {known.get(number, f'type {number}')}, which can't be "
            "read; quantize the model another way"
        ) from None


def _values(reader: Reader) -> dict[str, Any]:
    """The header's values by their keys; arrays are lists."""
    fields = reader.fields.items()
    own = ("GGUF.", "tokenizer.")
    return {key: field.contents() for key, field in fields if not key.startswith(own)}


def _part(path: Path, number: int) -> Reader:
    reader = Reader(str(path))
    found = _values(reader).get("split.no")
    if found != number:
        raise refusal(path, f"split.no is {found}, by its name it is {number}; rename the file")
    return reader


def _other_parts(path: Path, values: Mapping[str, Any]) -> list[tuple[int, Path]]:
    """The number, from 0, and the path of each part but the first."""
    count, number = values.get("split.count", 0), values.get("split.no", 0)
    if not count > 1:
        return []
    name = _PART_NAME.fullmatch(path.name)
    if name is None or int(name["count"]) != count:
        raise refusal(
            path,
            f"it is part {number + 1} of {count} of a split file, whose names end in "
            f"-{number + 1:05}-of-{count:05}.gguf; rename the parts, or merge them with "
            "llama-gguf-split --merge",
        )
    paths = [
        path.with_name(f"{name['stem']}-{index + 1:05}-of-{count:05}.gguf")
        for index in range(count)
    ]
    if number != 0:
        raise refusal(path, f"it is part {number + 1} of {count}; give the first, {paths[0].name}")
    for part in paths:
        if not part.is_file():
            raise refusal(path, f"it is split, and the part {part.name} isn't beside it")
    return list(enumerate(paths))[1:]


def check_general(path: Path, values: Mapping[str, Any]) -> None:
    """Refuses what is no model by itself, and keys outside the architecture's that aren't known.

    Raises:
        EdgeInfiniteError: names the key.
    """
    kind = values.get("general.type", "model")
    if kind != "model":
        what = {"adapter": "a LoRA adapter", "mmproj": "the image or audio part of a model"}
        raise refusal(
            path,
            f"general.type is {kind!r}: it is {what.get(kind, 'no model by itself')}; give the "
            "model's own file",
        )
    if "general.architecture" not in values:
        raise refusal(path, "it has no general.architecture; give a model's own file")
    version = values.get("general.quantization_version", _NEWEST_QUANTIZATION)
    if version != _NEWEST_QUANTIZATION:
        raise refusal(
            path, f"general.quantization_version is {version}, only {_NEWEST_QUANTIZATION} is read"
        )
    own = f"{values['general.architecture']}."
    for key in values:
        if not key.startswith(own) and not _changes_nothing(key):
            raise unknown_key(path, key)


def unknown_key(path: Path, key: str) -> EdgeInfiniteError:
    """The error for a key that may change what the model computes."""
    return refusal(
        path,
        f"its key {key} isn't known, so what it means would be lost; if it means nothing, take it "
        f"out with gguf-new-metadata --remove-metadata {key} FILE NEW_FILE",
    )


_ABOUT = {
    "architecture", "type", "quantization_version", "alignment", "file_type", "name", "author",
    "version", "organization", "finetune", "basename", "description", "quantized_by", "size_label",
    "license", "url", "doi", "uuid", "repo_url", "tags", "languages", "datasets",
}  # fmt: skip
"""Of `general.*`: read above, or about where the file comes from."""

_ABOUT_GROUPS = ("license.", "source.", "base_model.", "dataset.", "sampling.")
"""Of `general.*`: origins, and defaults of sampling, which the artifact's own file states."""

_OF_TOOLS = ("split.", "quantize.", "imatrix.", "mradermacher.", "unsloth.")
"""What tools note about their own work."""


def _changes_nothing(key: str) -> bool:
    space, _, name = key.partition(".")
    if space == "general":
        return name in _ABOUT or name.startswith(_ABOUT_GROUPS)
    return key.startswith(_OF_TOOLS)
