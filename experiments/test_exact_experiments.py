"""The experiments on exact attention, on tiny models."""

from __future__ import annotations

import json

import exact_on_gpu
import torch
from exact_and_fixed_report import NAMES, plot, table
from exact_and_fixed_systems import open_reader
from tiny_artifact import tiny_checkpoint

from edgeinfinite.models.checkpoint.loading import load_backbone
from tiny import random_tokens


def test_the_script_for_gpus_measures_every_method_and_leaves_the_model_as_it_was(tmp_path):
    checkpoint, rows = str(tiny_checkpoint(tmp_path / "tiny")), tmp_path / "rows.json"
    command = [checkpoint, "--lengths", "20,33", "--new-tokens", "2", "--device", "cpu"]
    exact_on_gpu.main([*command, "--chunk", "8", "--dtype", "float32", "--json", str(rows)])
    found = [(row["method"], row["prompt_tokens"]) for row in json.loads(rows.read_text())]
    assert found == [(name, length) for name in exact_on_gpu.ON_GPU for length in (20, 33)]
    model = load_backbone(checkpoint).model
    with torch.inference_mode():
        tokens = torch.tensor([random_tokens(20)])
        expected = model(tokens).logits
        exact_on_gpu.measured(model, "mom-paper", 20, 2, 8)
        assert torch.equal(model(tokens).logits, expected)


def test_a_prompt_that_does_not_fit_the_gpu_is_a_row_without_figures(tmp_path, monkeypatch):
    model = load_backbone(str(tiny_checkpoint(tmp_path / "tiny"))).model

    def full(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(type(model), "forward", full)
    row = exact_on_gpu.measured(model, "mini-sequence", 20, 2, 8)
    assert row == exact_on_gpu.Row("mini-sequence", 20)


def test_the_part_of_a_model_reads_the_prompt_and_all_of_it_decodes_from_a_full_cache(tmp_path):
    checkpoint = str(tiny_checkpoint(tmp_path / "tiny", 4))
    reader = open_reader("part", checkpoint, tokens=5_000, threads=1)
    whole = open_reader("mom", checkpoint, tokens=5_000, threads=1)
    for one in (reader, whole):
        one.skip(random_tokens(100))
    reader.fill(4_500)
    assert reader.state_bytes == 45 * whole.state_bytes
    reader.skip([5])
    assert reader.logits.shape == whole.logits.shape
    assert reader.state_bytes > 45 * whole.state_bytes


def test_a_table_has_a_row_for_each_system_and_length_and_says_what_failed(tmp_path):
    figures = {"peak_rss_bytes": 2e6, "state_bytes": 1e6, "prefill_cpu_s": 2.0}
    figures |= {"decode_cpu_ms": 3.0}
    recall = {"nats_per_token": 1.5, "nats_per_answer_token": 0.5, "exact": 3, "facts": 8}
    mom = {"system": "mom", "prompt_tokens": 2048, **figures, **recall}
    part = {"system": "part", "prompt_tokens": 4096, **figures}
    failed = {"system": "mom", "prompt_tokens": 4096, "error": "too long"}
    lines = table([part, mom, mom, failed]).splitlines()[2:]
    assert lines == [
        f"| 2,048 | {NAMES['mom']} | 2 | 1.0 | 2.0 | 3 | 1.500 | 6 of 16 | 0.50 |",
        f"| 4,096 | {NAMES['mom']} | too long |",
        f"| 4,096 | {NAMES['part']} | 2 | 1.0 | 29.0 | 3 | – | – | – |",
    ]
    plot([part, mom, failed], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1_000
