"""`edgeinfinite evaluate babilong`, from bAbI's files and books to rows and tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_babi import tiny_babi, tiny_books

from edgeinfinite.cli import main
from edgeinfinite.evaluation.questions import measure

CARRY = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
CARRY += ["--window-length", "44"]
ASKED = ["--tasks", "qa1,qa2", "--lengths", "1200,1400", "--samples", "2"]
METHODS = ["--methods", "empty,full,edgeinfinite"]
COUNT = 2 * 2 * 2 * 3


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("texts")
    babi, books = tiny_babi(folder / "babi"), tiny_books(folder / "books")
    return ["--data", str(babi), "--books", str(books)]


def babilong(checkpoint: Path, texts: list[str], *more: str) -> int:
    command = ["evaluate", "babilong", "--model", str(checkpoint), *texts, *CARRY]
    return main([*command, *ASKED, *METHODS, *more])


def rows_of(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def timeless(rows: list[dict]) -> list[dict]:
    return [{k: v for k, v in row.items() if k != "first_token_s"} for row in rows]


def test_rows_and_tables_have_tasks_and_lengths_and_a_killed_run_goes_on_to_them(
    checkpoint, texts, tmp_path, monkeypatch, capsys
):
    whole, out = tmp_path / "whole.json", tmp_path / "rows.json"
    assert babilong(checkpoint, texts, "--json", str(whole)) == 0
    rows, shown = rows_of(whole), capsys.readouterr().out
    assert len(rows) == COUNT
    documented = ["method", "task", "length", "row", "score", "answer_nats", "prompt_tokens"]
    assert list(rows[0])[: len(documented)] == documented
    for row in rows:
        assert row["answer_nats"] > 0 and row["score"] in (0, 1)
        if row["method"] == "edgeinfinite":
            assert row["length"] - 70 < row["prompt_tokens"] <= row["length"]
        else:  # without the text, or cut to the model's 512 positions
            assert row["prompt_tokens"] < 1200
    assert "| qa1, 1,200 tokens | 2 |" in shown and "| **1,400 tokens** | 4 |" in shown

    read, measured = [], measure._measure

    def stopped(reading, *arguments):
        if len(read) == 10:
            raise KeyboardInterrupt
        read.append(reading)
        return measured(reading, *arguments)

    monkeypatch.setattr(measure, "_measure", stopped)
    assert babilong(checkpoint, texts, "--json", str(out)) == 130
    monkeypatch.undo()
    assert len(rows_of(out)) == 10
    assert babilong(checkpoint, texts, "--json", str(out)) == 0
    assert timeless(rows_of(out)) == timeless(rows)
    assert capsys.readouterr().out.partition("## ")[2] == shown.partition("## ")[2] != ""

    assert main(["evaluate", "summary", str(out)]) == 0
    assert shown.partition("## ")[2] in capsys.readouterr().out
    assert babilong(checkpoint, texts, "--json", str(out), "--seed", "1") == 2
    assert "other options" in capsys.readouterr().err


def test_an_artifact_is_asked_the_same(checkpoint, texts, tmp_path, capsys):
    artifact = tmp_path / "artifact"
    export = ["export", "--model", str(checkpoint), "--output", str(artifact), *CARRY]
    assert main([*export, "--gate", "none"]) == 0
    out = [tmp_path / "model.json", tmp_path / "artifact.json"]
    less = ["--tasks", "qa1", "--lengths", "1200", "--json"]
    assert babilong(checkpoint, texts, *less, str(out[0]), "--methods", "edgeinfinite") == 0
    command = ["evaluate", "babilong", "--artifact", f"ours={artifact}", *texts, *ASKED]
    assert main([*command, "--threads", "1", *less, str(out[1])]) == 0
    expected, got = map(rows_of, out)
    got = [row for row in got if row["method"] == "ours"]
    for ours, theirs in zip(got, expected, strict=True):
        assert ours["row"] == theirs["row"] and ours["answer"] == theirs["answer"]
        assert ours["answer_nats"] == pytest.approx(theirs["answer_nats"], rel=1e-3)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--tasks", "qa9"], "unknown task 'qa9'"),
        (["--tasks", "qa3"], "needs one qa3_"),
        (["--lengths", "200"], "give longer --lengths"),
        (["--lengths", "200000"], "too few sentences for a prompt of 200,000"),
        (["--books", "nowhere"], "nowhere doesn't exist"),
        (["--data", "nowhere"], "nowhere isn't a folder"),
        (["--cut-methods", "streaming=100"], "streaming isn't measured"),
    ],
)
def test_bad_input_is_one_line(checkpoint, texts, capsys, monkeypatch, tmp_path, more, says):
    monkeypatch.chdir(tmp_path)
    assert babilong(checkpoint, texts, *more) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and says in error
