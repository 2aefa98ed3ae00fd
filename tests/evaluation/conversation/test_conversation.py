"""`evaluate conversation`, of a tiny checkpoint and of its artifacts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_artifact import VOCABULARY, tiny_checkpoint
from tiny_babi import tiny_books
from transformers import LlamaConfig, LlamaForCausalLM

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.cli import main
from edgeinfinite.evaluation.conversation.options import METHODS
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import save_scorers

SIZES = ["--segment-length", "128", "--sink-length", "8"]
LENGTH = 9000


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    return tiny_checkpoint(tmp_path_factory.mktemp("tiny"), model=LlamaForCausalLM(config))


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_books(tmp_path_factory.mktemp("data") / "books")


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("scorer") / "scorer.safetensors"
    save_scorers(path, [RetentionScorer(2, 8) for _ in range(2)], RankRule(), {})
    return path


@pytest.fixture(scope="module")
def artifacts(
    checkpoint: Path, scorer: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """With slots, without and with as many bytes, and without and with fewer."""
    folder = tmp_path_factory.mktemp("artifacts")
    shapes = {
        "ours": ["--window-length", "640", "--recall-slots", "2560", "--scorer", str(scorer)],
        "cache": ["--window-length", "3360", "--recall-slots", "0"],
        "small": ["--window-length", "2000", "--recall-slots", "0"],
    }
    for name, shape in shapes.items():
        command = ["export", "--model", str(checkpoint), "--output", str(folder / name)]
        assert main([*command, "--policy", "carry", *SIZES, *shape]) == 0
    return [folder / name for name in shapes]


def measure(books: Path, rows: Path, *more: str) -> tuple[int, list[dict[str, object]]]:
    command = ["evaluate", "conversation", "--data", str(books), "--json", str(rows)]
    code = main([*command, "--facts", "4", "--samples", "1", *more])
    return code, json.loads(rows.read_text())["rows"] if rows.exists() else []


def test_every_method_of_a_checkpoint_is_measured_and_a_killed_run_goes_on(
    checkpoint, books, tmp_path, capsys, scorer
):
    of_model = ["--model", str(checkpoint), *SIZES, "--window-length", "1024"]
    of_model += ["--recall-slots", "2944", "--scorer", str(scorer), "--lengths", str(LENGTH)]
    rows = tmp_path / "rows.json"
    code, found = measure(books, rows, *of_model)
    assert code == 0
    assert [row["method"] for row in found[::4]] == list(METHODS)
    assert len(found) == 4 * len(METHODS)
    table = capsys.readouterr().out
    assert all(f"| {method} | 9,000 |" in table for method in METHODS)
    window = 8 + 128 + 1024 + 2944
    of = {method: [row for row in found if row["method"] == method] for method in METHODS}
    for method in ("summary", "extract", "newest", "empty"):
        for row in of[method]:
            assert row["read_tokens"] < window
            assert row["state_bytes"] == of["streaming"][0]["state_bytes"]
    assert of["edgeinfinite"][0]["read_tokens"] == of["edgeinfinite"][0]["chat_tokens"] > 7000
    assert [row["in_text"] for row in of["newest"]][::3] == [False, True]
    assert not any(row["in_text"] for row in of["empty"])
    assert all(row["in_text"] for row in of["edgeinfinite"])
    assert of["summary"][0]["compactions"] > 1 and of["extract"][0]["compactions"] > 1
    half = json.loads(rows.read_text())
    half["rows"] = half["rows"][: 4 * 3]
    rows.write_text(json.dumps(half))
    assert measure(books, rows, *of_model) == (0, found)
    other = measure(books, rows, *of_model, "--seed", "5")
    assert other[0] == 2 and "other options" in capsys.readouterr().err


def test_a_state_that_holds_the_whole_chat_answers_as_the_cut_text_does(
    checkpoint, books, tmp_path
):
    of_model = ["--model", str(checkpoint), *SIZES, "--window-length", "7000", "--lengths", "5000"]
    of_model += ["--recall-slots", "0", "--methods", "streaming,newest,summary"]
    _, found = measure(books, tmp_path / "rows.json", *of_model)
    streaming, newest, summary = found[:4], found[4:8], found[8:]
    for row in [*newest, *summary]:
        assert row["read_tokens"] == row["chat_tokens"] and row["compactions"] == 0
    for one, two, three in zip(streaming, newest, summary, strict=True):
        same = one["nats_per_digit_token"]
        assert two["nats_per_digit_token"] == three["nats_per_digit_token"] == same


def test_artifacts_that_are_no_pair_are_refused(books, tmp_path, capsys, artifacts):
    ours, cache, small = artifacts

    def refused(*more: str) -> str:
        assert measure(books, tmp_path / "rows.json", *more)[0] == 2
        return capsys.readouterr().err

    assert "--artifact needs --streaming" in refused("--artifact", str(ours))
    pair = ["--artifact", str(ours), "--streaming"]
    assert "isn't StreamingLLM's cache" in refused(*pair, str(ours))
    assert "another --window-length" in refused(*pair, str(small))
    assert "unknown method 'full'" in refused(*pair, str(cache), "--methods", "full")
    assert "leave --cache-type out" in refused(*pair, str(cache), "--cache-type", "int8")
    assert "a checkpoint needs none" in refused("--model", "x", "--streaming", str(cache))
    code, found = measure(
        books, tmp_path / "rows.json", *pair, str(cache), "--lengths", "7000", "--threads", "1"
    )
    assert code == 0 and len(found) == 4 * len(METHODS)
    sizes = {row["state_bytes"] for row in found}
    assert max(sizes) < 1.02 * min(sizes)
