"""`edgeinfinite train-gate`, from texts to a gate that reads its memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.cli import main
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone, parameters_digest
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.trained_file import read_metadata
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.training.gate import train as gate_module
from edgeinfinite.training.gate.lengths import Lengths
from edgeinfinite.training.gate.loss import (
    Teacher,
    cross_entropy,
    divergence,
    watch_teacher,
)
from edgeinfinite.training.gate.options import GateOptions
from edgeinfinite.training.gate.score import held_out_losses
from edgeinfinite.training.gate.segments import SegmentState, read_segments
from edgeinfinite.training.gate.steps import GateSteps
from tiny import assert_close, attached, random_tokens, tiny_llama

LENGTHS = ["--segment-length", "24", "--sink-length", "4", "--window-length", "6"]
QUICK = [*LENGTHS, "--samples", "4", "--segments", "3", "--held-out-samples", "2"]
STILL = ["--transfer-samples", "0", "--learning-rate", "0", "--opening-learning-rate", "0"]


def train(checkpoint: Path, texts: Path, output: Path, *more: str) -> int:
    command = ["train-gate", "--model", str(checkpoint), "--data", str(texts), *QUICK]
    return main([*command, "--output", str(output), "--token-cache", str(texts / "cache"), *more])


def test_a_training_pass_equals_a_session():
    """The same logits, M and z as the reference engine's of a prompt."""
    geometry = Geometry(8, 4, 3)
    model = attached(geometry)
    lengths = Lengths(geometry.sink_length, geometry.segment_length)
    tokens = random_tokens(lengths.tokens(3))
    state = SegmentState(model, lengths)
    with torch.no_grad():
        for part in read_segments(model, torch.tensor(tokens), state, lengths):
            last = part.logits[-1]
            memory = [m.clone() for m in state.memory]
    session = Session(TorchEngine(model))
    assert_close(last, session.append(tokens[:-1]))
    assert_close(torch.stack(memory), session.state.arrays["memory"])


def test_the_gradient_of_a_pass_is_the_loss_s_slope():
    model = attached(Geometry(8, 4, 3))
    lengths = Lengths(4, 8)
    tokens = torch.tensor(random_tokens(lengths.tokens(1)))
    gates = [p for layer in attention_layers(model) for p in layer.memory_gate.parameters()]
    (read,) = read_segments(model, tokens, SegmentState(model, lengths), lengths)
    cross_entropy(read.logits, tokens[read.places]).backward()
    gradient = [p.grad.clone() for p in gates]

    def loss_at(step: float, direction: list[torch.Tensor]) -> float:
        for p, d in zip(gates, direction, strict=True):
            p.data += step * d
        state = SegmentState(model, lengths)
        with torch.no_grad():
            total = sum(
                float(cross_entropy(part.logits, tokens[part.places]))
                for part in read_segments(model, tokens, state, lengths)
            )
        for p, d in zip(gates, direction, strict=True):
            p.data -= step * d
        return total

    scale = torch.sqrt(sum((g * g).sum() for g in gradient))
    direction = [g / scale for g in gradient]
    measured = (loss_at(1e-3, direction) - loss_at(-1e-3, direction)) / 2e-3
    assert measured == pytest.approx(float(scale), rel=0.02)


def test_the_gate_learns_and_the_backbone_does_not_change(checkpoint, texts, tmp_path, capsys):
    output = tmp_path / "gate.safetensors"
    digest = parameters_digest(load_backbone(str(checkpoint)).model, gates=False)
    assert train(checkpoint, texts, output, "--samples", "30", "--learning-rate", "0.02") == 0
    shown = capsys.readouterr()
    assert "own memory: " in shown.out and "measuring on held-out documents" in shown.err
    card = read_metadata(output)
    assert card["weights_sha256"] == digest
    trained, held_out = (json.loads(card[k]) for k in ("trained_on", "held_out_documents"))
    assert len(trained) + len(held_out) == 5 and not set(trained) & set(held_out)
    assert str(texts) not in str(card)
    rows = [json.loads(line) for line in output.with_suffix(".jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 91))
    assert [row["tokens"] for row in rows] == [24 * step for step in range(1, 91)]
    losses = [row["loss"] for row in rows]
    assert np.mean(losses[-15:]) < np.mean(losses[:15]) - 0.05
    score = json.loads(card["held_out_score"])
    assert score["own_memory"] < score["no_memory"] - 0.05
    assert output.with_suffix(".png").stat().st_size > 5000
    model = load_backbone(str(checkpoint)).model
    attach(model, EdgeInfiniteConfig(Geometry(24, 4, 6), str(output)))
    assert parameters_digest(model, gates=False) == digest
    assert not output.with_name(output.name + ".checkpoint").exists()


def test_an_interrupted_run_resumes_to_the_same_gate(checkpoint, texts, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole.safetensors", tmp_path / "cut.safetensors"
    assert train(checkpoint, texts, whole) == 0
    original = GateSteps.step

    def stopped(self, losses):
        if self.done == 5:  # in the middle of a stretch
            raise KeyboardInterrupt
        return original(self, losses)

    monkeypatch.setattr(GateSteps, "step", stopped)
    assert train(checkpoint, texts, cut) == 130
    assert not cut.exists()
    monkeypatch.setattr(GateSteps, "step", original)
    assert train(checkpoint, texts, cut) == 0
    first, second = load_file(whole), load_file(cut)
    assert all(torch.equal(first[name], second[name]) for name in first)

    def losses(path: Path) -> list[float]:
        lines = path.with_suffix(".jsonl").read_text().splitlines()
        return [json.loads(line)["loss"] for line in lines]

    assert losses(whole) == losses(cut)


def test_another_run_at_the_same_output_is_refused(
    checkpoint, texts, tmp_path, monkeypatch, capsys
):
    output = tmp_path / "gate.safetensors"
    monkeypatch.setattr(
        gate_module, "held_out_losses", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert train(checkpoint, texts, output) == 130
    assert train(checkpoint, texts, output, "--seed", "3") == 2
    assert "belongs to a run with other options" in capsys.readouterr().err


def test_distillation_is_the_divergence_and_zero_for_the_teacher_itself():
    model = tiny_llama()
    tokens = torch.tensor(random_tokens(40))
    with torch.no_grad():
        logits = model(input_ids=tokens[None, :-1]).logits[0]
    teacher = watch_teacher(model, tokens)
    assert float(divergence(logits, teacher)) == pytest.approx(0.0, abs=1e-5)
    other = logits + torch.randn_like(logits)
    exact = torch.nn.functional.kl_div(
        other.log_softmax(-1), logits.log_softmax(-1), log_target=True, reduction="batchmean"
    )
    # 64 of 97 tokens are kept: a little less than the whole.
    assert 0.9 * float(exact) < float(divergence(other, teacher)) <= float(exact) + 1e-5
    assert isinstance(teacher.at(slice(3, 9)), Teacher)
    assert torch.equal(teacher.at(slice(3, 9)).tokens, teacher.tokens[2:8])


def test_distillation_and_the_zero_control_train(checkpoint, texts, tmp_path):
    assert train(checkpoint, texts, tmp_path / "a.safetensors", "--loss", "distillation") == 0
    output = tmp_path / "b.safetensors"
    assert train(checkpoint, texts, output, "--memory", "zero") == 0
    tensors = load_file(output)
    untrained = tmp_path / "u.safetensors"
    assert train(checkpoint, texts, untrained, *STILL) == 0
    # What a zero memory can't reach: W1 and the feature map are multiplied with nothing but zero.
    for name, tensor in load_file(untrained).items():
        unreached = name.endswith("w1.weight") or ".feature_map." in name
        assert torch.equal(tensor, tensors[name]) == unreached, name


def test_a_trained_gate_is_measured_beside_its_controls(checkpoint, texts, tmp_path):
    own, zero, rows = tmp_path / "own.safetensors", tmp_path / "zero.safetensors", tmp_path / "rows"
    assert train(checkpoint, texts, own) == train(checkpoint, texts, zero, "--memory", "zero") == 0
    held_out = [*json.loads(read_metadata(own)["held_out_documents"]), "other.txt"]
    (texts / "other.txt").write_text((texts / held_out[0]).read_text().upper())
    methods = "memory-off,untrained-gate,trained-gate,swapped-memory,zero-memory-gate"
    command = ["evaluate", "perplexity", "--model", str(checkpoint), "--policy", "reencode"]
    command += ["--data", *(str(texts / name) for name in held_out), *LENGTHS, "--tokens", "120"]
    command += ["--methods", methods, "--gate", str(own), "--zero-gate", str(zero)]
    assert main([*command, "--dtype", "bfloat16", "--bin-length", "60", "--json", str(rows)]) == 0
    (texts / "other.txt").unlink()
    found = {
        row["method"]: row["nats_per_token"]
        for row in json.loads(rows.read_text())["rows"]
        if row["bin_start"] == 60 and row["document"] == held_out[0]
    }
    assert set(found) == set(methods.split(",")) and len(set(found.values())) == 5


def test_two_processes_read_different_stretches_and_share_every_step(checkpoint, texts, tmp_path):
    """While nothing is learnt, a step's loss is the mean of those that one process has."""
    alone, both = tmp_path / "alone.safetensors", tmp_path / "both.safetensors"
    assert train(checkpoint, texts, alone, *STILL) == 0
    command = ["train-gate", "--model", str(checkpoint), "--data", str(texts), *QUICK, *STILL]
    command += ["--output", str(both), "--token-cache", str(texts / "cache")]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    subprocess.run(
        [*launch, "-m", "edgeinfinite.cli", *command],
        check=True,
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
    )

    def rows(path: Path) -> list[dict]:
        lines = path.with_suffix(".jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    losses = [row["loss"] for row in rows(alone)]
    expected = [(losses[i] + losses[i + 3]) / 2 for i in (0, 1, 2, 6, 7, 8)]
    assert [row["loss"] for row in rows(both)] == pytest.approx(expected, rel=1e-5)
    assert rows(both)[-1]["tokens"] == rows(alone)[-1]["tokens"]


def test_the_memory_of_an_equal_text_in_place_of_its_own_changes_nothing():
    lengths = Lengths(sinks=4, segment=8)
    model = attached(Geometry(8, 4, 3))
    tokens = np.array(random_tokens(lengths.tokens(4)))
    losses = held_out_losses(model, [tokens, tokens], lengths, 2, lambda done: None)
    assert losses["swapped_memory"] == losses["own_memory"] != losses["zero_memory"]


def test_jsonl_has_one_text_per_line(checkpoint, texts, tmp_path):
    # U+2028 ends a line for str.splitlines, but not in JSONL.
    rows = [{"text": f"\u2028{path.read_text()}"} for path in sorted(texts.glob("*.txt"))]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    output = tmp_path / "gate.safetensors"
    assert train(checkpoint, file.parent, output, "--token-cache", str(tmp_path / "c")) == 0
    names = json.loads(read_metadata(output)["trained_on"])
    assert names and all(name.startswith("texts.jsonl:") for name in names)


@pytest.mark.parametrize(
    ("given", "positions", "loss", "segments"),
    [
        ({}, 8192, "distillation", 2),  # the paper's lengths: 300 + 3 x 2048 fit, 4 x don't
        ({"geometry": Geometry(512, 64, 64)}, 8192, "distillation", 5),
        ({}, 2400, "cross-entropy", 5),
        ({"segments": 3}, 8192, "cross-entropy", 3),
        ({"loss": "cross-entropy"}, 8192, "cross-entropy", 5),
        ({"loss": "distillation", "segments": 9}, 8192, "distillation", 9),  # refused later
    ],
)
def test_the_default_loss_is_distillation_if_full_attention_fits(given, positions, loss, segments):
    options = GateOptions("model", [], Path("gate.safetensors"), **given).for_backbone(positions)
    assert (options.loss, options.passes) == (loss, segments)


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        ('{"words": "a"}', [], r'line 2 isn\'t a JSON object with a string "text"'),
        ("[1]", [], "line 2"),
        ('{"text": "short"}', ["--loss", "cross-entropy", "--segments", "900"], "a sample needs"),
        ('{"text": "short"}', ["--loss", "distillation", "--segments", "40"], "--segments 20"),
        ('{"text": "short"}', ["--learning-rate", "-1"], "learning rate must be"),
        ('{"text": "short"}', ["--start", "nowhere.safetensors"], "nowhere.safetensors"),
        ('{"text": "short"}', ["--plot", "/nowhere/x.png"], "no folder"),
    ],
)
def test_bad_input_is_one_clear_error(checkpoint, texts, tmp_path, capsys, line, more, message):
    file = tmp_path / "texts.jsonl"
    text = json.dumps({"text": (texts / "text0.txt").read_text()})
    file.write_text(f"{text}\n{line}\n{text}\n")
    output = tmp_path / "gate.safetensors"
    where = ["--token-cache", str(tmp_path / "c")]
    assert train(checkpoint, file, output, *where, *more) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and not output.exists()
    assert re.search(message, error)
