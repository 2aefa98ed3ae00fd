"""Methods compute on the device of the model, with the numbers of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pretend_gpu import pretend_gpu
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.methods import ABLATIONS, GATE_CONTROLS, METHODS, Reader, configuration
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.placement import PlacedEngine, device_of
from edgeinfinite.evaluation.prompt_compression import COMPRESSIONS, CompressedPromptReader
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from tiny import assert_close, attached, random_tokens, tiny_llama

CARRY = Geometry(8, 4, 8, policy="carry", recall_slots=16)
VARIED = Geometry(8, 4, 8, policy="carry", recall_slots=(16, 8))
PAPER = Geometry(8, 4, 6)
TOKENS = random_tokens(70)


def setting(geometry: Geometry = CARRY, **more: Any) -> Setting:
    scorer = UNTRAINED_SCORER if geometry.recall_slots else None
    return Setting(geometry, scorer=scorer, **more)


def assert_same_there(method: str, chosen: Setting) -> None:
    """Compares what a GPU predicts with what the CPU predicts, also after going back."""

    def predictions(reader: TextReader) -> np.ndarray:
        first = reader.read(TOKENS[:50])
        restore = reader.save()
        reader.skip(TOKENS[20:50])
        restore()
        return np.concatenate((first.nats[1:], reader.read(TOKENS[50:]).nats, reader.logits))

    here = reader_of(tiny_llama(), method, chosen)
    expected = predictions(here)
    with pretend_gpu() as gpu:
        there = reader_of(tiny_llama().to(gpu), method, chosen)
        assert_close(predictions(there), expected)
    assert there.state_bytes == here.state_bytes


def reader_of(model: PreTrainedModel, method: str, chosen: Setting) -> TextReader:
    if method not in COMPRESSIONS:
        return Reader(model, method, chosen, len(TOKENS), TOKENS[::-1])
    attach(model, configuration("full", chosen, len(TOKENS)))
    return CompressedPromptReader(model, COMPRESSIONS[method], 40, 50)


@pytest.mark.parametrize("method", [*sorted({*METHODS} - {"random"}), *COMPRESSIONS])
def test_a_gpu_predicts_what_the_cpu_predicts(method):
    assert_same_there(method, setting())


def test_random_slots_on_a_gpu():
    # Which pairs stay depends on the last bits of their values, so the numbers may differ.
    with pretend_gpu() as gpu:
        reader = reader_of(tiny_llama().to(gpu), "random", setting())
        assert np.isfinite(reader.read(TOKENS).nats[1:]).all()


@pytest.mark.parametrize("cache_type", ["float16", "int8"])
def test_caches_of_fewer_bits_on_a_gpu(cache_type):
    chosen = setting(cache_type=cache_type, scale_tokens=random_tokens(100))
    assert_same_there("edgeinfinite", chosen)


def test_layers_with_unequal_slots_on_a_gpu():
    assert_same_there("edgeinfinite", setting(VARIED))


@pytest.mark.parametrize("method", [*GATE_CONTROLS, *ABLATIONS])
def test_the_memory_on_a_gpu(method, tmp_path):
    path = tmp_path / "gate.safetensors"
    save_gate(path, attention_layers(attached(PAPER, opening="place")), {})
    assert_same_there(method, setting(PAPER, gate=str(path), zero_gate=str(path)))


def test_the_state_lies_where_the_model_lies():
    with pretend_gpu() as gpu:
        engine = PlacedEngine(attached(CARRY).to(gpu))
        state = engine.new_state()
        expected = TorchEngine(attached(CARRY)).new_state()
        assert {name for name, array in state.arrays.items() if array.device == gpu} == set(
            expected.arrays
        ) - {"length", "has_memory"}
    assert state.nbytes == expected.nbytes
    assert isinstance(state.length, np.ndarray)


def test_a_gpu_that_is_mixed_with_the_cpu_is_noticed():
    with pretend_gpu() as gpu:
        there = torch.ones(3, device=gpu)
        assert there.device == gpu and (there + 1).device == gpu
        assert (there + torch.tensor(1.0)).sum().item() == 6
        with pytest.raises(RuntimeError, match="on the GPU and on the CPU"):
            there + torch.ones(3)
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
        assert there.cpu().numpy().tolist() == [1, 1, 1]


def test_each_process_gets_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of("cpu") == torch.device("cpu")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert device_of("cuda") == torch.device("cuda", 0)
    found = []
    for rank in range(4):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        found.append(device_of("cuda").index)
    assert found == [0, 1, 0, 1]
    assert device_of("cuda:0") == torch.device("cuda", 0)
    with pytest.raises(EdgeInfiniteError, match="GPUs here are 0 to 1"):
        device_of("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:", "cpu:0", ""])
def test_another_device_is_refused(name):
    with pytest.raises(EdgeInfiniteError, match="choose cpu, cuda or cuda:N"):
        device_of(name)


def test_without_a_gpu_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EdgeInfiniteError, match="finds no GPU; install a build of torch for CUDA"):
        device_of("cuda")
