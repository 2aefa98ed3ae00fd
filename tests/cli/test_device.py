"""`--device` of the commands that measure a checkpoint."""

from __future__ import annotations

import json

import pytest
import torch
from pretend_gpu import pretend_gpu
from tiny_longbench import tiny_longbench

from edgeinfinite.cli import main

CARRY = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
CARRY += ["--window-length", "44"]


def test_longbench_on_a_gpu_has_the_rows_of_the_cpu(checkpoint, tmp_path, monkeypatch):
    folder = tiny_longbench(tmp_path / "data")
    command = ["evaluate", "longbench", "--model", str(checkpoint), "--data", str(folder), *CARRY]
    command += ["--methods", "empty,full,streaming,snapkv", "--tasks", "qasper"]
    here, there = tmp_path / "cpu.json", tmp_path / "gpu.json"
    assert main([*command, "--json", str(here)]) == 0
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pretend_gpu():
        assert main([*command, "--device", "cuda", "--json", str(there)]) == 0
    expected, found = (json.loads(path.read_text())["rows"] for path in (here, there))
    assert len(expected) == len(found) > 0
    for row, wanted in zip(found, expected, strict=True):
        assert row["answer_nats"] == pytest.approx(wanted["answer_nats"], abs=1e-4)
        same = ("method", "task", "row", "answer", "score", "state_bytes", "peak_state_bytes")
        assert [row[name] for name in same] == [wanted[name] for name in same]


@pytest.mark.parametrize("task", ["passkey", "perplexity", "babilong"])
def test_without_a_gpu_the_command_says_so_before_it_loads_anything(
    task, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    command = ["evaluate", task, "--model", str(tmp_path / "missing"), "--device", "cuda:7"]
    books = ["--books", str(tmp_path)] if task == "babilong" else []
    assert main([*command, "--data", str(tmp_path), *books]) == 2
    assert "finds no GPU" in capsys.readouterr().err


def test_an_artifact_has_no_other_device(artifact, tmp_path, capsys):
    command = ["evaluate", "passkey", "--artifact", str(artifact), "--device", "cuda"]
    assert main(command) == 2
    assert "leave --device out, or give --model" in capsys.readouterr().err
