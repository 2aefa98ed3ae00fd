"""Eq. 8-10, the gate's size, and gate files that refuse what doesn't fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.memory.gate import MemoryGate, default_rank, log_positions
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.models.trained_file import read_metadata
from tiny import attached, tiny_llama

GEOMETRY = Geometry(8, 4, 3)


@pytest.fixture
def gate_file(tmp_path: Path) -> Path:
    path = tmp_path / "gate.safetensors"
    save_gate(path, attention_layers(attached(GEOMETRY)), {"trained_on": "nothing"})
    return path


def use(path: Path, **shape: int):
    return attach(tiny_llama(**shape), EdgeInfiniteConfig(GEOMETRY, gate=str(path)))


def test_the_gate_computes_equations_8_and_9():
    torch.manual_seed(0)
    gate = MemoryGate(4, 8, 16)
    torch.nn.init.normal_(gate.g)
    retrieved, local = torch.randn(1, 4, 3, 8), torch.randn(1, 4, 3, 8)
    adapted = gate.w2(torch.relu(gate.w1(retrieved)))
    opening = torch.sigmoid(gate.g)[:, None]
    expected = opening * adapted + (1 - opening) * local
    torch.testing.assert_close(gate.blend(local, retrieved, local, torch.ones(1)), expected)


def test_a_gate_that_the_query_opens():
    torch.manual_seed(0)
    gate = MemoryGate(4, 8, 16, opening="query")
    query, retrieved, local = (torch.randn(1, 4, 3, 8) for _ in range(3))
    found = gate.blend(query, retrieved, local, torch.ones(1))
    closed = MemoryGate(4, 8, 16)
    closed.load_state_dict({k: v for k, v in gate.state_dict().items() if k != "u"})
    torch.testing.assert_close(found, closed.blend(query, retrieved, local, torch.ones(1)))
    torch.nn.init.normal_(gate.u)
    adapted = gate.w2(torch.relu(gate.w1(retrieved)))
    for head in range(4):
        for token in range(3):
            opening = torch.sigmoid(gate.g[head] + gate.u[head] @ query[0, head, token])
            expected = torch.lerp(local[0, head, token], adapted[0, head, token], opening)
            found = gate.blend(query, retrieved, local, torch.ones(1))[0, head, token]
            torch.testing.assert_close(found, expected)
    assert torch.equal(gate.blend(query, retrieved, local, torch.zeros(1)), local)


def test_a_gate_that_the_place_opens_closes_as_the_cache_fills():
    torch.manual_seed(0)
    gate = MemoryGate(4, 8, 16, opening="place")
    query, retrieved, local = (torch.randn(1, 4, 3, 8) for _ in range(3))
    log_position = log_positions(torch.tensor([63, 1023, 2047]))
    torch.testing.assert_close(log_position, torch.tensor([16.0, 1.0, 0.5]).log())
    by_query = MemoryGate(4, 8, 16, opening="query")
    torch.nn.init.normal_(gate.u)
    by_query.load_state_dict({k: v for k, v in gate.state_dict().items() if k != "c"})
    found = gate.blend(query, retrieved, local, torch.ones(1), log_position)
    torch.testing.assert_close(found, by_query.blend(query, retrieved, local, torch.ones(1)))
    gate.c.data = torch.tensor([[0.0], [1.0], [2.0], [-1.0]])
    share, before = gate.share(query, log_position), by_query.share(query)
    odds, odds_before = (s / (1 - s) for s in (share, before))
    expected = torch.tensor([[1.0, 1, 1], [16, 1, 0.5], [256, 1, 0.25], [1 / 16, 1, 2]])
    torch.testing.assert_close(odds / odds_before, expected[None, ..., None].expand_as(odds))


@pytest.mark.parametrize("rank", [8, 5])
def test_a_gate_can_begin_with_the_memory_itself_blended_in(rank):
    torch.manual_seed(0)
    gate = MemoryGate(4, 8, rank)
    gate.begin_with_identity()
    retrieved, local = torch.randn(1, 4, 3, 8) / 8, torch.randn(1, 4, 3, 8)
    basis = gate.w1.weight
    assert torch.linalg.matrix_rank(basis) == rank
    projected = retrieved @ basis.T @ basis
    assert rank < 8 or torch.allclose(projected, retrieved, atol=1e-5)
    opening = torch.sigmoid(torch.tensor(-3.0))
    expected = opening * projected + (1 - opening) * local
    torch.testing.assert_close(gate.blend(local, retrieved, local, torch.ones(1)), expected)


def test_without_memory_the_gate_returns_local_attention_to_the_last_bit():
    gate = MemoryGate(4, 8, 16)
    local = torch.randn(1, 4, 3, 8)
    assert torch.equal(
        gate.blend(local, torch.randn(1, 4, 3, 8) * 1e6, local, torch.zeros(1)), local
    )


def test_the_demo_models_gate_has_the_papers_share_of_parameters():
    assert default_rank(134_515_008, layers=30, heads=9, head_dim=64) == 48


def test_a_saved_gate_is_loaded_unchanged(gate_file):
    saved, loaded = attention_layers(attached(GEOMETRY)), attention_layers(use(gate_file))
    for one, other in zip(saved, loaded, strict=True):
        for name, tensor in one.memory_gate.state_dict().items():
            assert torch.equal(tensor, other.memory_gate.state_dict()[name])


FORMS = [("learned", "query"), ("softmax", "constant"), ("learned", "place")]


@pytest.mark.parametrize("form", FORMS)
def test_a_gates_file_names_its_form(tmp_path, form):
    path = tmp_path / "gate.safetensors"
    saved = attached(GEOMETRY, feature_map=form[0], opening=form[1])
    save_gate(path, attention_layers(saved), {"trained_on": "nothing"})
    card = read_metadata(path)
    assert (card["feature_map"], card["opening"], card["trained_on"]) == (*form, "nothing")
    for one, other in zip(attention_layers(saved), attention_layers(use(path)), strict=True):
        gate = other.memory_gate
        assert (gate.feature_map.name, gate.opening) == form
        for name, tensor in one.memory_gate.state_dict().items():
            assert torch.equal(tensor, gate.state_dict()[name])


def test_a_file_without_a_form_has_the_papers_and_an_unknown_form_is_refused(gate_file):
    tensors = load_file(gate_file)
    save_file(tensors, gate_file)
    gate = attention_layers(use(gate_file))[0].memory_gate
    assert (gate.feature_map.name, gate.opening) == ("elu", "constant")
    for name in ("feature_map", "opening"):
        save_file(tensors, gate_file, metadata={name: "of a later version"})
        with pytest.raises(EdgeInfiniteError, match=r"gate\.safetensors: unknown .*later version"):
            use(gate_file)


def test_an_untrained_gate_is_the_same_each_time_and_leaves_the_random_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one = attach(tiny_llama(), EdgeInfiniteConfig(GEOMETRY))
    torch.manual_seed(5)
    other = attach(tiny_llama(), EdgeInfiniteConfig(GEOMETRY))
    weight = "w1.weight"
    assert torch.equal(
        *(attention_layers(m)[1].memory_gate.state_dict()[weight] for m in (one, other))
    )
    torch.manual_seed(5)
    model = tiny_llama()
    torch.manual_seed(5)
    attach(model, EdgeInfiniteConfig(GEOMETRY))
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("shape", [{"heads": 2}, {"layers": 3}, {"layers": 1}])
def test_a_gate_of_another_model_is_refused(gate_file, shape):
    with pytest.raises(EdgeInfiniteError, match=r"gate file .*(doesn't fit|layers)"):
        use(gate_file, **shape)


def test_a_gate_with_nan_is_refused(gate_file):
    tensors = load_file(gate_file)
    tensors["layers.1.g"][0, 0] = float("nan")
    save_file(tensors, gate_file)
    with pytest.raises(EdgeInfiniteError, match=r"layers\.1\.g holds NaN"):
        use(gate_file)


def test_a_truncated_or_missing_gate_file_is_refused(gate_file):
    with pytest.raises(EdgeInfiniteError, match="doesn't exist"):
        use(gate_file.with_name("other.safetensors"))
    gate_file.write_bytes(gate_file.read_bytes()[:-10])
    with pytest.raises(EdgeInfiniteError, match="can't be read"):
        use(gate_file)
