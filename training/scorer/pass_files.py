"""Watched passes on disk: a killed training goes on with them, and memory doesn't hold them all.

Letters: L layers, K KV heads, n pairs, D head dimension.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import held_alone, remove
from edgeinfinite.models.trained_file import replacing_tensors

_OF = "of.json"
_INPUTS = "inputs"


class PassFiles:
    """A folder with one file for each pass of the backbone.

    Args:
        folder: where they lie; it is there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, name: str) -> bool:
        """Whether a pass was watched before, and its file can be read."""
        try:
            with safe_open(self._file(name), framework="pt"):
                return True
        except (SafetensorError, OSError):
            return False

    def save(self, name: str, tensors: dict[str, torch.Tensor]) -> None:
        """Writes what was watched in a pass, whole or not at all.

        Raises:
            EdgeInfiniteError, OSError: it can't be written.
        """
        with replacing_tensors(self._file(name)) as unfinished:
            save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, unfinished)

    def load(self, name: str, *, without: str = "") -> dict[str, torch.Tensor]:
        """What was watched in a pass, apart from one tensor."""
        if not without:
            return load_file(self._file(name))
        with safe_open(self._file(name), framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys() if key != without}  # noqa: SIM118

    def joined(self, names: Sequence[str], key: str, pairs: int) -> torch.Tensor:
        """One tensor of all passes, `[L, K, n, 2D]`, mapped from a file and so not in memory.

        Args:
            names: of the passes, in order.
            key: the tensor's; `[L, K, n of the pass, 2D]` float16.
            pairs: n of all passes.
        """
        path = self._folder / f"{_INPUTS}-{names[0]}"
        whole: torch.Tensor | None = None
        start = 0
        for name in names:
            with safe_open(self._file(name), framework="pt") as file:
                part = file.get_tensor(key)
            if whole is None:
                layers, heads, _, width = part.shape
                size = layers * heads * pairs * width
                _reserve(path, size * part.element_size())
                whole = torch.from_file(str(path), shared=True, size=size, dtype=part.dtype)
                whole = whole.view(layers, heads, pairs, width)
            whole[:, :, start : start + part.shape[2]] = part
            start += part.shape[2]
        assert whole is not None and start == pairs
        return whole

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


@contextmanager
def pass_files(output: Path, subject: dict[str, object]) -> Iterator[PassFiles]:
    """The passes of a training, beside the file that it writes; removed when it is finished.

    Args:
        output: what is trained.
        subject: everything that decides what is watched; files of another subject are removed.

    Raises:
        EdgeInfiniteError: another process trains the same file, or the folder's name is taken.
    """
    folder = output.with_name(f"{output.name}.passes")
    of = folder / _OF
    text = json.dumps(subject, sort_keys=True, default=str)
    with held_alone(folder):
        if folder.exists() and not of.is_file() and any(folder.iterdir()):
            raise EdgeInfiniteError(f"{folder} holds something else; give another --output")
        if not of.is_file() or of.read_text(encoding="utf-8") != text:
            _remove(folder)
            folder.mkdir()
            of.write_text(text, encoding="utf-8")
        yield PassFiles(folder)
        _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a folder, at the end what says that it is ours: a kill may come at any time."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name != _OF:
                remove(path)
        (folder / _OF).unlink(missing_ok=True)
        folder.rmdir()


def _reserve(path: Path, size: int) -> None:
    """Makes a file of so many bytes: on a full disk that fails, where writing a mapped one kills.

    Raises:
        OSError: there is no room for it.
    """
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
