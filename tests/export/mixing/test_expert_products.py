"""Experts are measured as other weights are: by what they read, and by the loss's gradients."""

from __future__ import annotations

import json

import every_decoder
import pytest
import torch
from every_decoder import tiny_decoder
from tiny_artifact import GEOMETRY, VOCABULARY, tiny_checkpoint
from torch.nn.functional import cross_entropy

from edgeinfinite.cli import main
from edgeinfinite.export.mixing.curvature import collect
from edgeinfinite.export.mixing.expert_products import watched_experts
from edgeinfinite.models.experts import as_rows, expert_modules, projections

KINDS = ("olmoe", "qwen3_moe", "granitemoe", "lfm2_moe", "gpt_oss")  # the last has biases, turned
TOKEN = 5


@pytest.mark.parametrize("kind", KINDS)
def test_experts_that_are_watched_compute_what_they_did(kind):
    model, ids = tiny_decoder(kind), torch.arange(40)[None] % 90
    seen: list[str] = []
    with torch.no_grad():
        wanted = model(ids).logits
        with watched_experts(model, lambda name: lambda *_: seen.append(name)):
            found = model(ids).logits
        again = model(ids).logits
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert torch.equal(again, wanted)
    assert seen == [
        f"{p}.{name}" for p, part in expert_modules(model) for name in projections(part)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_one_token_are_the_gradients_of_untouched_experts(kind, monkeypatch):
    """Of one token and one expert a weight's gradient is g xᵀ."""
    monkeypatch.setitem(every_decoder._SIZES, "num_experts_per_tok", 1)
    model = tiny_decoder(kind)
    statistics = collect(model, [[TOKEN]], lambda *_: None)
    parts = dict(expert_modules(model))
    weights = {
        f"{path}.{name}": (part, getattr(part, name).requires_grad_())
        for path, part in parts.items()
        for name in projections(part)
    }
    logits = model(torch.tensor([[TOKEN]])).logits[0]
    labels = torch.multinomial(logits.softmax(-1), 1, generator=torch.Generator().manual_seed(0))
    cross_entropy(logits, labels[:, 0]).backward()
    assert weights
    for name, (part, weight) in weights.items():
        gradient, found = as_rows(part, weight.grad), statistics[name]
        assert float(gradient.abs().max()) > 0
        squares = found.outputs * found.inputs.trace()
        torch.testing.assert_close(gradient.square().sum(1), squares, rtol=1e-3, atol=1e-12)


def test_a_report_has_the_experts_too(tmp_path, monkeypatch, capsys):
    for name in ("vocab_size", "vocab_size_per_layer_input"):
        monkeypatch.setitem(every_decoder._SIZES, name, VOCABULARY)
    checkpoint = tiny_checkpoint(tmp_path / "olmoe", model=tiny_decoder("olmoe"))
    report = tmp_path / "report.jsonl"
    command = ["quantize-report", "--model", str(checkpoint), "--output", str(report), *GEOMETRY]
    assert main(command) == 0
    assert "mlp.experts.gate_up_proj" in capsys.readouterr().out
    rows = [json.loads(line) for line in report.read_text().splitlines()[1:]]
    losses = {
        row["format"]: row["loss"]
        for row in rows
        if row["weight"].endswith("0.mlp.experts.gate_up_proj")
    }
    assert losses["int4 asymmetric g32"] > 10 * losses["int8 symmetric g32"] > 0
    command[4] = str(tmp_path / "other.jsonl")
    assert main([*command, "--backend", "executorch"]) == 2
    assert "doesn't run experts yet" in capsys.readouterr().err
