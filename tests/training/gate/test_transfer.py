"""The first stage of gate training: fitting each layer to full attention."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.training.gate import transfer as gate_transfer
from edgeinfinite.training.gate.lengths import Lengths
from edgeinfinite.training.gate.loss import cross_entropy
from edgeinfinite.training.gate.segments import SegmentState, read_segments
from edgeinfinite.training.gate.transfer import corrections, fit_layer, look_at
from tiny import attached, random_tokens, tiny_family, tiny_llama

GEOMETRY = Geometry(8, 4, 3)
LENGTHS = Lengths(4, 8)


def train(checkpoint: Path, texts: Path, output: Path, *more: str) -> int:
    command = ["train-gate", "--model", str(checkpoint), "--data", str(texts), "--segments", "3"]
    command += ["--segment-length", "24", "--sink-length", "4", "--window-length", "6", "--samples"]
    command += ["1", "--held-out-samples", "2", "--token-cache", str(texts / "cache")]
    return main([*command, "--output", str(output), *more])


@pytest.fixture
def model():
    return attached(GEOMETRY, feature_map="learned", opening="query")


def test_norms_after_rope_are_refused_since_queries_move_by_other_weights():
    tokens = torch.tensor(random_tokens(LENGTHS.tokens(3)))
    with pytest.raises(EdgeInfiniteError, match="a gate can't be trained for it"):
        look_at(tiny_family("Hunyuan"), tokens, LENGTHS, number=0)


def test_the_fitted_attention_equals_a_sessions(model):
    """In the first layer, whose input is the text alone; up to the half precision of `Seen`."""
    tokens = torch.tensor(random_tokens(LENGTHS.tokens(3)))
    gate = attention_layers(model)[0].memory_gate
    passes = []
    gate.register_forward_hook(lambda _module, inputs, output: passes.append((inputs[3], output)))
    with torch.no_grad():
        list(read_segments(model, tokens, SegmentState(model, LENGTHS), LENGTHS))
        passes = passes[1:]  # the first reads no memory
        seen = look_at(model, tokens, LENGTHS, number=0)[0]
        local = torch.cat([local for local, _ in passes], 2)[0]
        combined = torch.cat([combined for _, combined in passes], 2)[0]
        torch.testing.assert_close(seen.local.float(), local, rtol=2e-3, atol=2e-3)
        found = seen.local.float() + corrections(gate, seen, seen)
        torch.testing.assert_close(found, combined, rtol=1e-2, atol=1e-2)
        assert (corrections(gate, seen, None) - corrections(gate, seen, seen)).abs().max() > 0.1


def test_local_attention_plus_missed_equals_full_attention():
    model = tiny_llama()
    tokens = torch.tensor(random_tokens(LENGTHS.tokens(2)))
    found = []
    attention = attention_layers(model)[1].o_proj
    attention.register_forward_hook(lambda _module, inputs, _output: found.append(inputs[0][0]))
    with torch.no_grad():
        model(tokens[None])
    seen = look_at(model, tokens, LENGTHS, number=0)[1]
    full = found[0].unflatten(1, (4, 8)).transpose(0, 1)[:, 12:28]
    torch.testing.assert_close((seen.local + seen.missed).float(), full, rtol=5e-3, atol=5e-3)


def test_a_fit_explains_more_with_the_memory_than_without():
    explained = {}
    for reads in ("own", "zero"):
        config = EdgeInfiniteConfig(GEOMETRY, gate_rank=8, feature_map="learned", opening="query")
        model = attach(tiny_llama(), config)
        stretches = [torch.tensor(random_tokens(LENGTHS.tokens(3), seed)) for seed in range(4)]
        layer = attention_layers(model)[1]
        gate, output = layer.memory_gate, layer.o_proj.weight
        gate.begin_with_identity()
        seen = [look_at(model, tokens, LENGTHS, n)[1] for n, tokens in enumerate(stretches)]
        before = gate.feature_map.weight.detach().clone()
        fitted = [fit_layer(gate, seen, output, reads=reads, epochs=40, seed=0) for _ in range(2)]
        assert torch.equal(before, gate.feature_map.weight) == (reads == "zero")
        assert 0 < fitted[0] < fitted[1] < 1  # goes on where it was
        explained[reads] = fitted[1]
    assert explained["own"] > 1.2 * explained["zero"]


def test_a_learned_map_gets_its_gradient_for_keys_that_were_folded_before(model):
    tokens = torch.tensor(random_tokens(LENGTHS.tokens(1)))
    weight = attention_layers(model)[1].memory_gate.feature_map.weight

    def loss() -> torch.Tensor:
        state = SegmentState(model, LENGTHS, trains_keys=True)
        (part,) = read_segments(model, tokens, state, LENGTHS)
        return cross_entropy(part.logits, tokens[part.places])

    loss().backward()
    gradient, step = weight.grad.clone(), 1e-2 * torch.randn_like(weight)
    with torch.no_grad():
        weight += step
        above = float(loss())
        weight -= 2 * step
        below = float(loss())
    assert above - below == pytest.approx(2 * float((gradient * step).sum()), rel=0.05)


def test_a_run_interrupted_in_the_first_stage_resumes_to_the_same_gate(
    checkpoint,
    texts,
    tmp_path,
    monkeypatch,
):
    def run(output: Path) -> int:
        return train(checkpoint, texts, output, "--transfer-samples", "3")

    assert run(tmp_path / "whole.safetensors") == 0
    original, calls = gate_transfer.fit_layer, []

    def stopped(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(gate_transfer, "fit_layer", stopped)
    assert run(tmp_path / "cut.safetensors") == 130
    monkeypatch.setattr(gate_transfer, "fit_layer", original)
    assert run(tmp_path / "cut.safetensors") == 0
    one, other = (load_file(tmp_path / f"{name}.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--transfer-samples", "-1"], "from 0 on"),
        (["--sink-length", "200", "--segment-length", "200"], "--transfer-samples 0"),
    ],
)
def test_an_impossible_transfer_is_one_clear_error(
    checkpoint,
    texts,
    tmp_path,
    capsys,
    more,
    message,
):
    assert train(checkpoint, texts, tmp_path / "gate.safetensors", *more) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
