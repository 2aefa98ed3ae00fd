"""`bench --methods`: every method reads the same text to the same logits and loss."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES
from tiny_artifact import tiny_checkpoint

from edgeinfinite.cli import main
from edgeinfinite.evaluation.exact_cost.budget import longest_context
from edgeinfinite.evaluation.exact_cost.case import METHODS, MemoryCase, MemoryOptions
from edgeinfinite.evaluation.exact_cost.methods import method_of
from edgeinfinite.evaluation.exact_cost.run import run_case, run_methods
from edgeinfinite.models.architecture import architecture_of
from tiny import assert_close, random_tokens, tiny_family

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.mark.parametrize("family", ARCHITECTURES)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_the_models_logits_in_prefill_and_decode(
    name: str, family: str, tmp_path: Path
) -> None:
    model, tokens = tiny_family(family), torch.tensor([random_tokens(24)])
    with torch.no_grad():
        expected = model(tokens).logits[0]
    case = MemoryCase(name, "", 20, 4, 1, 6, "float32", offload_folder=str(tmp_path))
    method = method_of(case, model)
    assert_close(method.read(tokens[:, :20]), expected[19])
    for at in range(20, 24):
        assert_close(method.read(tokens[:, at : at + 1]), expected[at])
    has_full_attention = 0 in architecture_of(model).sliding_windows
    on_disk = name in ("offload", "mom-paper", "mom") and has_full_attention
    assert (method.disk_bytes > 0) == on_disk, "windows stay in memory"


def test_bench_compares_methods_and_finds_the_longest_context(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, rows = tmp_path / "text.txt", tmp_path / "rows.json"
    text.write_text("It was a bright cold day in April. " * 20)
    command = ["bench", "--model", str(checkpoint), "--methods", "standard,mom"]
    command += ["--lengths", "300", "--new-tokens", "4", "--repeats", "1", "--threads", "1"]
    command += ["--text", str(text), "--chunk", "64", "--peer-cache", str(tmp_path / "cache")]
    command += ["--json", str(rows), "--plot", str(tmp_path / "plot.png")]
    assert main(command) == 0
    assert "| mom | 300 |" in capsys.readouterr().out
    assert (tmp_path / "plot.png").stat().st_size > 1000
    standard, mom = json.loads(rows.read_text())["rows"]
    assert not standard["error"] and not mom["error"]
    assert mom["nats_per_token"] == pytest.approx(standard["nats_per_token"], abs=1e-4)
    assert mom["logit_difference"] < 1e-4 and standard["disk_bytes"] == 0
    assert mom["disk_bytes"] == 304 * 2 * 2 * 2 * 8 * 4
    assert mom["weights_bytes"] > mom["activation_bytes"] >= mom["prefill_bytes"] >= 0


def test_a_case_that_fails_or_takes_too_long_is_a_row_with_the_reason(checkpoint: Path) -> None:
    case = MemoryCase("mom", str(checkpoint), 20, 0, 1, 6, "float32")
    assert "took more than" in str(run_case(case, 0.01).error)
    missing = MemoryCase("mom", "./nowhere", 20, 0, 1, 6, "float32")
    assert "failed: " in str(run_case(missing, 60).error)


def test_a_text_that_is_too_short_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("short")
    options = MemoryOptions(str(checkpoint), text=text, peer_cache=tmp_path / "cache")
    with pytest.raises(Exception, match=r"has \d+ tokens; give a text of at least 8,224"):
        run_methods(options)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--methods", "mom"], "give it with --model"),
        (["--methods", "mine", "--model", "x"], "unknown method 'mine'; choose among standard"),
        (["--methods", "mom", "--model", "x", "--peers", "llama.cpp"], "in another run"),
        (["DIR", "--methods", "mom", "--model", "x"], "in another run"),
        ([], "nothing to measure; give an artifact's folder"),
    ],
)
def test_mistakes_are_one_line(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("budget", [50.0, 77.7, 1000.0, 3.0])
@pytest.mark.parametrize("curve", ["line", "square"])
def test_the_longest_context_is_found_with_few_measurements(budget: float, curve: str) -> None:
    asked: list[int] = []

    def measured(length: int) -> float:
        asked.append(length)
        growth = 1e-2 if curve == "line" else length * 1e-6
        return 5 + length * growth

    row = longest_context("mom", budget, measured)
    lengths = np.arange(0, 200_000, 128)
    peaks = 5 + lengths * (1e-2 if curve == "line" else lengths * 1e-6)
    best = int(lengths[peaks <= budget].max(initial=0))
    assert best * 0.95 - 128 <= row.prompt_tokens <= best
    assert row.limited_by == "memory" and len(asked) <= 9


def test_a_search_that_runs_out_of_time_says_so() -> None:
    row = longest_context("mom", 1e9, lambda length: None if length > 9000 else 1e5 * length)
    assert row.limited_by == "time" and 2000 < row.prompt_tokens <= 9000
