"""Weights in files: the same numbers, little memory, nothing left behind."""

from __future__ import annotations

import errno
import gc
import os
import sys
from pathlib import Path

import pytest
import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.weights import file_memory
from edgeinfinite.models.weights.file_memory import FileMemory
from tiny import VOCABULARY, random_tokens, tiny_family

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def file_bytes() -> int:
    """Of mapped files in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile:"))


def test_arrays_keep_what_is_written_when_they_leave_memory(tmp_path):
    memory = FileMemory(tmp_path)
    small, large = memory.zeros(3), memory.zeros(600, 700)
    assert not small.any() and not large.any() and large.shape == (600, 700)
    large += torch.arange(700.0)
    memory.release()
    assert torch.equal(large[599], torch.arange(700.0))
    assert not list(tmp_path.iterdir()), "the file has no name"


@LINUX
def test_released_arrays_take_no_memory(tmp_path):
    memory = FileMemory(tmp_path)
    array = memory.zeros(32 << 20 >> 2)
    memory.release()
    before = file_bytes()
    array += 1
    assert file_bytes() - before >= array.nbytes
    memory.release()
    assert file_bytes() - before < 1 << 20


@LINUX
def test_files_are_gone_when_nobody_uses_them(tmp_path):
    def opened() -> int:
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    memory = FileMemory(tmp_path)
    array = memory.zeros(1 << 20)
    assert opened() == 1
    del memory, array
    gc.collect()
    assert opened() == 0


@pytest.mark.parametrize("name", ["Llama 3.2", "Gemma 3"])
def test_a_model_in_files_computes_the_same_and_ties_stay(name, tmp_path, monkeypatch):
    monkeypatch.setattr(file_memory, "_SMALL", 0)
    model, tokens = tiny_family(name), torch.tensor([random_tokens(20)])
    with torch.no_grad():
        expected = model(tokens).logits
        memory = FileMemory(tmp_path)
        memory.move(model)
        with memory.one_layer_at_a_time(model):
            assert torch.equal(model(tokens).logits, expected)
    tied = model.config.get_text_config().tie_word_embeddings
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == tied


@LINUX
def test_one_layer_is_in_memory_at_a_time(tmp_path):
    model = tiny_family("Llama", num_hidden_layers=6, hidden_size=512, intermediate_size=2048)
    memory = FileMemory(tmp_path)
    memory.move(model)
    layers = model.get_decoder().layers
    layer = sum(p.nbytes for p in layers[0].parameters())
    head = model.lm_head.weight.nbytes
    most, before = 0, file_bytes()

    def watch(*_: object) -> None:
        nonlocal most
        most = max(most, file_bytes() - before)

    for one in layers:
        one.register_forward_hook(watch)
    with memory.one_layer_at_a_time(model), torch.no_grad():
        model(torch.randint(0, VOCABULARY, (1, 30)))
    assert 0.8 * layer < most < 1.3 * layer + head
    assert file_bytes() - before < 0.3 * layer


def test_a_full_disk_is_one_line_with_advice_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(EdgeInfiniteError, match=r"file of weights .*No space left.*set TMPDIR"):
        FileMemory(tmp_path).zeros(1 << 20)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(EdgeInfiniteError, match=r"file of weights .*can't be created"):
        FileMemory(tmp_path / "nowhere").zeros(1 << 20)
