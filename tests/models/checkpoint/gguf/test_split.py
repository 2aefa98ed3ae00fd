"""A split GGUF file is read as one, or says which part is wrong."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("gguf")

from tiny_gguf import write

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.weights import file_memory
from edgeinfinite.models.weights.file_memory import FileMemory


@pytest.fixture
def parts(tmp_path):
    write(tmp_path / "part.gguf", split=10)
    return sorted(tmp_path.glob("part-*.gguf"))


@pytest.mark.parametrize("in_files", [False, True])
def test_all_parts_are_joined(parts, in_files, tmp_path, monkeypatch):
    monkeypatch.setattr(file_memory, "_SMALL", 0)
    assert len(parts) == 2
    whole = load_backbone(str(write(tmp_path / "whole.gguf"))).model
    found = load_backbone(str(parts[0]), FileMemory(tmp_path) if in_files else None)
    for name, values in found.model.state_dict().items():
        assert torch.equal(values, whole.state_dict()[name]), name
    assert len(found.tensors) == 20


def test_another_part_than_the_first_names_the_first(parts):
    with pytest.raises(
        EdgeInfiniteError, match=r"part 2 of 2; give the first, part-00001-of-00002"
    ):
        load_backbone(str(parts[1]))


def test_a_missing_part_is_named(parts):
    parts[1].unlink()
    with pytest.raises(EdgeInfiniteError, match=r"the part part-00002-of-00002\.gguf isn't beside"):
        load_backbone(str(parts[0]))


def test_a_renamed_part_says_how_parts_are_called(parts, tmp_path):
    renamed = parts[0].rename(tmp_path / "model.gguf")
    with pytest.raises(EdgeInfiniteError, match="part 1 of 2 of a split file, whose names end in"):
        load_backbone(str(renamed))


def test_a_part_of_another_place_is_refused(parts):
    parts[1].write_bytes(parts[0].read_bytes())
    with pytest.raises(EdgeInfiniteError, match=r"split\.no is 0, by its name it is 1"):
        load_backbone(str(parts[0]))
