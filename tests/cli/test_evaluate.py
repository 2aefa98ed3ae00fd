"""`edgeinfinite evaluate`, from texts to rows, tables and plots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_artifact import tiny_checkpoint
from tiny_squad import NAMES, tiny_squad
from tiny_texts import tiny_texts
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BatchEncoding

from edgeinfinite.cli import main
from edgeinfinite.evaluation import artifact_reader, perplexity
from edgeinfinite.evaluation.options import PasskeyOptions, PerplexityOptions
from edgeinfinite.evaluation.planted import planted_text
from edgeinfinite.evaluation.questions import systems
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.trained_file import read_metadata

CARRY = [
    "--policy",
    "carry",
    "--segment-length",
    "16",
    "--sink-length",
    "4",
    "--window-length",
    "16",
]
PASSKEY = ["--lengths", "300,420", "--samples", "1", "--facts", "2", "--kinds", "words,numbers"]
PERPLEXITY = ["--tokens", "200", "--bin-length", "50", "--documents", "2"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    return tiny_texts(tmp_path_factory.mktemp("texts"), 4)


def evaluate(task: str, checkpoint: Path, texts: Path, *more: str) -> int:
    options = PASSKEY if task == "passkey" else PERPLEXITY
    command = ["evaluate", task, "--model", str(checkpoint), "--data", str(texts), *CARRY]
    return main([*command, *options, *more])


def rows_of(path: Path) -> list[dict]:
    return json.loads(path.read_text())["rows"]


def test_passkey_gives_a_row_for_every_fact_of_every_reading(checkpoint, texts, tmp_path, capsys):
    out, plot = tmp_path / "rows.json", tmp_path / "plot.png"
    assert evaluate("passkey", checkpoint, texts, "--json", str(out), "--plot", str(plot)) == 0
    rows = rows_of(out)
    assert [(r["method"], r["prompt_tokens"]) for r in rows[::2]] == [
        (method, length)
        for length in (300, 420)
        for method in ("full", "streaming", "edgeinfinite")
    ]
    documented = [
        "method",
        "prompt_tokens",
        "depth",
        "seed",
        "correct",
        "nats_per_digit_token",
        "state_bytes",
    ]
    assert set(documented) <= set(rows[0])
    assert all(0 < row["depth"] < 1 and row["nats_per_digit_token"] > 0 for row in rows)
    assert len({row["state_bytes"] for row in rows if row["method"] == "edgeinfinite"}) == 1
    assert plot.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr()
    assert "| full | 300 |" in shown.out and "tokens/s" in shown.err


def test_perplexity_gives_a_row_for_every_bin(checkpoint, texts, tmp_path, capsys):
    out, plot = tmp_path / "rows.json", tmp_path / "plot.svg"
    assert evaluate("perplexity", checkpoint, texts, "--json", str(out), "--plot", str(plot)) == 0
    rows = rows_of(out)
    assert len(rows) == 2 * 3 * 4
    assert set(rows[0]) == {
        "method",
        "document",
        "bin_start",
        "bin_end",
        "tokens",
        "nats_per_token",
        "state_bytes",
    }
    assert [r["tokens"] for r in rows[:4]] == [49, 50, 50, 50]  # nothing predicts the first one
    assert "<svg" in plot.read_text()
    assert "| streaming |" in capsys.readouterr().out


@pytest.mark.parametrize(("task", "module"), [("passkey", systems), ("perplexity", perplexity)])
def test_an_interrupted_run_resumes_where_it_stopped(
    checkpoint, texts, tmp_path, monkeypatch, task, module
):
    whole, out = tmp_path / "whole.json", tmp_path / "rows.json"
    assert evaluate(task, checkpoint, texts, "--json", str(whole)) == 0
    readings, reader = [], module.Reader

    def counted(model, method, *more):
        if len(readings) == 2:
            raise KeyboardInterrupt
        readings.append(method)
        return reader(model, method, *more)

    monkeypatch.setattr(module, "Reader", counted)
    assert evaluate(task, checkpoint, texts, "--json", str(out)) == 130
    kept = rows_of(out)
    assert kept == rows_of(whole)[: len(kept)] and readings == ["full", "streaming"]
    readings = ["none", "of the old ones"][:1]
    monkeypatch.setattr(
        module,
        "Reader",
        lambda model, method, *more: readings.append(method) or reader(model, method, *more),
    )
    assert evaluate(task, checkpoint, texts, "--json", str(out)) == 0
    assert rows_of(out) == rows_of(whole)
    assert readings[1:] == ["edgeinfinite", "full", "streaming", "edgeinfinite"]


def test_rows_of_other_options_are_not_mixed(checkpoint, texts, tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert evaluate("perplexity", checkpoint, texts, "--json", str(out), "--methods", "full") == 0
    before = out.read_bytes()
    more = ["--json", str(out), "--window-length", "32"]
    assert evaluate("perplexity", checkpoint, texts, *more) == 2
    assert "other options" in capsys.readouterr().err
    assert out.read_bytes() == before
    out.write_text("not json")
    assert evaluate("perplexity", checkpoint, texts, "--json", str(out)) == 2
    assert out.read_text() == "not json"


def test_training_documents_are_not_tested_on(checkpoint, texts, tmp_path, capsys):
    scorer, out = tmp_path / "scorer.safetensors", tmp_path / "rows.json"
    command = ["train-scorer", "--model", str(checkpoint), "--data", str(texts)]
    command += ["--output", str(scorer), "--passes", "1", "--held-out-passes", "1", "--steps", "1"]
    command += ["--repeated-passes", "1"]
    assert main([*command, "--tokens", "400", "--gap", "40", "--facts", "1"]) == 0
    held_out = json.loads(read_metadata(scorer)["held_out_documents"])
    more = ["--recall-slots", "32", "--scorer", str(scorer), "--methods", "edgeinfinite"]
    assert evaluate("perplexity", checkpoint, texts, *more, "--json", str(out)) == 0
    assert {row["document"] for row in rows_of(out)} == set(held_out[:2])
    assert "left out" in capsys.readouterr().err
    trained = [p for p in sorted(texts.iterdir()) if p.name not in held_out]
    assert evaluate("perplexity", checkpoint, trained[0], *more) == 2
    assert "training has seen all" in capsys.readouterr().err


def test_full_attention_stops_at_the_trained_positions(checkpoint, texts, tmp_path):
    out = tmp_path / "rows.json"
    more = [
        "--json",
        str(out),
        "--tokens",
        "700",
        "--methods",
        "full,streaming",
        "--documents",
        "1",
    ]
    assert evaluate("perplexity", checkpoint, texts, *more) == 0
    last = {row["method"]: row["bin_end"] for row in rows_of(out)}
    assert last == {"full": 500, "streaming": 700}
    out.unlink()
    assert (
        evaluate(
            "passkey",
            checkpoint,
            texts,
            *more[:2],
            "--lengths",
            "700",
            "--methods",
            "full,streaming",
        )
        == 0
    )
    assert {row["method"] for row in rows_of(out)} == {"streaming"}


def test_a_summary_shows_runs_side_by_side(checkpoint, texts, tmp_path, capsys):
    files = [tmp_path / name for name in ("small.json", "large.json", "loss.json")]
    for file, window in zip(files, ("16", "48"), strict=False):
        more = ["--json", str(file), "--window-length", window]
        assert evaluate("passkey", checkpoint, texts, *more) == 0
    assert evaluate("perplexity", checkpoint, texts, "--json", str(files[2])) == 0
    rows = {file.stem: rows_of(file) for file in files}
    capsys.readouterr()
    plot = tmp_path / "plot.png"
    assert main(["evaluate", "summary", *map(str, files), "--plot", str(plot)]) == 0
    table = capsys.readouterr().out.splitlines()
    for run in ("small", "large"):
        own = [r for r in rows[run] if (r["method"], r["prompt_tokens"]) == ("streaming", 420)]
        nats = sum(r["nats_per_digit_token"] for r in own) / len(own)
        start = f"| streaming | {own[0]['state_bytes'] / 1e6:.1f} |"
        assert any(s.startswith(start) and s.endswith(f"| {nats:.3f} |") for s in table)
    assert sum(line.startswith("| full | grows |") for line in table) == 2  # one a command
    assert plot.read_bytes().startswith(b"\x89PNG")
    (tmp_path / "other.json").write_text('{"command": "bench", "rows": []}')
    assert main(["evaluate", "summary", str(tmp_path / "other.json")]) == 2
    assert "rows of 'bench'" in capsys.readouterr().err


def test_an_artifact_gets_the_same_questions_and_gives_the_same_answers(
    checkpoint, texts, tmp_path, capsys, monkeypatch
):
    slots = ["--recall-slots", "32", "--scorer", "untrained"]
    artifact, out = tmp_path / "artifact", [tmp_path / "model.json", tmp_path / "artifact.json"]
    export = ["export", "--model", str(checkpoint), "--output", str(artifact), *CARRY, *slots]
    assert main(export) == 0
    more = ["--methods", "edgeinfinite", "--json", str(out[0])]
    assert evaluate("passkey", checkpoint, texts, *slots, *more) == 0
    ask = ["evaluate", "passkey", "--artifact", str(artifact), "--data", str(texts), *PASSKEY]
    assert main([*ask, "--json", str(out[1]), "--threads", "1"]) == 0
    expected, got = map(rows_of, out)
    assert {row.pop("method") for row in expected} == {"edgeinfinite"}
    assert {row.pop("method") for row in got} == {"artifact"}
    for ours, theirs in zip(expected, got, strict=True):
        nats = ours.pop("nats_per_digit_token"), theirs.pop("nats_per_digit_token")
        assert nats[0] == pytest.approx(nats[1], rel=1e-3)
        assert ours == theirs
    # What stands there already is not computed again.
    monkeypatch.setattr(artifact_reader, "Session", None)
    assert main([*ask, "--json", str(out[1])]) == 0
    assert rows_of(out[1])[0]["method"] == "artifact"
    capsys.readouterr()
    assert main([*ask, "--policy", "carry"]) == 2
    assert "leave --policy out" in capsys.readouterr().err


def test_an_artifacts_loss_is_that_of_the_model_it_was_made_of(
    checkpoint, texts, tmp_path, capsys, monkeypatch
):
    artifact, out = tmp_path / "artifact", [tmp_path / "model.json", tmp_path / "artifact.json"]
    assert main(["export", "--model", str(checkpoint), "--output", str(artifact), *CARRY]) == 0
    more = ["--methods", "edgeinfinite", "--json", str(out[0])]
    assert evaluate("perplexity", checkpoint, texts, *more) == 0
    ask = ["evaluate", "perplexity", "--artifact", str(artifact), "--data", str(texts), *PERPLEXITY]
    assert main([*ask, "--json", str(out[1]), "--threads", "1"]) == 0
    expected, got = map(rows_of, out)
    assert len(got) == 2 * 4 and {row.pop("method") for row in got} == {"artifact"}
    for ours, theirs in zip(expected, got, strict=True):
        assert ours.pop("nats_per_token") == pytest.approx(theirs.pop("nats_per_token"), rel=1e-3)
        assert theirs.items() <= ours.items()
    # What stands there already is not computed again.
    monkeypatch.setattr(artifact_reader, "Session", None)
    assert main([*ask, "--json", str(out[1])]) == 0
    for option in (["--zero-gate", "gate.safetensors"], ["--state-mb", "1"]):
        capsys.readouterr()
        assert main([*ask, *option]) == 2
        assert f"leave {option[0]} out" in capsys.readouterr().err


def test_a_text_begins_with_bos_where_the_tokenizer_adds_it(checkpoint, texts):
    document, options = sorted(texts.iterdir())[0], PerplexityOptions(tokens=50)
    tokenizer = load_backbone(str(checkpoint)).tokenizer
    plain = perplexity.text_of(document, tokenizer, options)
    assert len(plain) == 50

    def with_bos(text: str, **more: object) -> BatchEncoding:
        ids = tokenizer(text, **more).input_ids
        return BatchEncoding({"input_ids": ids if more else [1, *ids]})

    assert perplexity.text_of(document, with_bos, options) == [1, *plain[:-1]]


def test_questions_about_paragraphs_are_asked_one_after_the_other(
    checkpoint, texts, tmp_path, capsys
):
    squad = ["--questions", str(tiny_squad(tmp_path / "squad.json")), "--facts", "4"]
    out = [tmp_path / "each.json", tmp_path / "turn.json"]
    length = ["--lengths", "320", "--samples", "2", "--methods", "full,edgeinfinite"]
    command = ["evaluate", "passkey", "--model", str(checkpoint), "--data", str(texts)]
    command += [*CARRY, *squad, *length]
    assert main([*command, "--json", str(out[0])]) == 0
    assert main([*command, "--json", str(out[1]), "--in-turn"]) == 0
    each, turn = map(rows_of, out)
    assert len(each) == len(turn) == 2 * 2 * len(NAMES)
    assert {row["kind"] for row in turn} == {"squad"}
    orders = [[r["place"] for r in turn[at : at + 4]] for at in range(0, 16, 4)]
    assert orders == [[1, 2, 3, 4]] * 4

    def by_fact(rows):
        return {(r["method"], r["seed"], r["depth"]): r["nats_per_digit_token"] for r in rows}

    # The same questions; what was asked first has seen nothing of the others.
    alone, after = by_fact(each), by_fact(turn)
    assert set(alone) == set(after)
    for row in turn:
        key = row["method"], row["seed"], row["depth"]
        assert (alone[key] == pytest.approx(after[key], rel=1e-5)) == (row["place"] == 1)
    assert "| 1 | 2 | 3 | 4 |" in capsys.readouterr().out


@pytest.mark.parametrize("bos", [False, True])
def test_the_questions_alone_are_asked_without_a_text(checkpoint, texts, tmp_path, bos):
    if bos:  # the tokenizer adds one
        checkpoint = tiny_checkpoint(tmp_path / "bos")
        tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
        tokenizer.post_processor = TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", 0)]
        )
        tokenizer.save(str(checkpoint / "tokenizer.json"))
    rows = tmp_path / "rows.json"
    command = ["evaluate", "passkey", "--model", str(checkpoint), "--data", str(texts), *CARRY]
    command += ["--facts", "2", "--lengths", "600", "--samples", "2", "--methods", "empty,full"]
    assert main([*command, "--json", str(rows)]) == 0
    backbone, options = load_backbone(str(checkpoint)), PasskeyOptions(facts=2, lengths=(600,))
    assert backbone.model.config.max_position_embeddings < 600  # so `full` can't read it
    expected = []
    for seed in range(2):
        text = planted_text(sorted(texts.iterdir()), backbone.tokenizer, 600, seed, options)
        for question in text.questions:
            asked = [0] * bos + question.asked
            ids = torch.tensor([asked + question.answer])
            labels = ids.clone()
            labels[:, : len(asked)] = -100
            with torch.no_grad():
                expected.append(float(backbone.model(ids, labels=labels).loss))
    found = rows_of(rows)
    assert {row["method"] for row in found} == {"empty"}
    assert [row["nats_per_digit_token"] for row in found] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("window", "same"), [(500, True), (60, False)])
def test_a_text_is_compressed_at_its_end_before_any_question(
    checkpoint, texts, tmp_path, window, same
):
    rows = tmp_path / "rows.json"
    command = ["evaluate", "passkey", "--model", str(checkpoint), "--data", str(texts)]
    command += ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
    command += ["--window-length", str(window), "--facts", "2", "--lengths", "400"]
    command += ["--samples", "2", "--methods", "full,snapkv,pyramidkv", "--json", str(rows)]
    assert main(command) == 0
    nats: dict[str, list[float]] = {}
    for row in rows_of(rows):
        nats.setdefault(row["method"], []).append(row["nats_per_digit_token"])
    for method in ("snapkv", "pyramidkv"):
        assert (nats[method] == pytest.approx(nats["full"], rel=1e-5)) == same


def test_a_sample_is_the_same_text_for_all_methods_and_another_for_each_seed(checkpoint, texts):
    tokenizer = load_backbone(str(checkpoint)).tokenizer
    documents, options = sorted(texts.iterdir()), PasskeyOptions(facts=4, lengths=(900,))
    texts_by_seed = [planted_text(documents, tokenizer, 900, seed, options) for seed in (0, 0, 1)]
    assert texts_by_seed[0] == texts_by_seed[1] != texts_by_seed[2]
    for text in texts_by_seed:
        decoded = tokenizer.decode(text.tokens)
        places = [decoded.find(question.fact.statement) for question in text.questions]
        assert -1 not in places and places == sorted(places)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--methods", "ful"], "unknown method 'ful'"),
        (["--facts", "9"], "can't be planted"),
        (["--kinds", "colours"], "unknown kind of facts 'colours'"),
        (["--lengths", "50"], "too few"),
        (["--lengths", "140"], "140 tokens are too few for 2 facts and a question"),
        (["--samples", "0"], "at least 1"),
        (["--turns", "-1"], "at least 1"),
        (["--turns", "3", "--in-turn"], "leave out --turns"),
        (["--turns", "40"], "too few for a chat of 42 turns"),
        (["--data", "nowhere"], "nowhere doesn't exist"),
        (["--json", "nowhere/rows.json"], "create it first"),
        (["--plot", "plot.txt"], "give a .png"),
        (["--recall-slots", "32"], "no scorer is shipped"),
        (["--state-mb", "nan"], "--state-mb is nan"),
        (["--state-mb", "0.001"], "--state-mb chooses --window-length"),
        (["--lengths", "9000"], "give longer documents"),
    ],
)
def test_bad_input_is_one_line(checkpoint, texts, capsys, monkeypatch, tmp_path, more, says):
    monkeypatch.chdir(tmp_path)
    assert evaluate("passkey", checkpoint, texts, *more) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and says in error
    assert not list(tmp_path.iterdir())
