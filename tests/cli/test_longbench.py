"""`edgeinfinite evaluate longbench`, from a folder to rows and tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_longbench import LENGTHS, ROWS, tiny_longbench

from edgeinfinite.cli import main
from edgeinfinite.evaluation.longbench.metrics import score
from edgeinfinite.evaluation.longbench.tasks import TASKS
from edgeinfinite.evaluation.questions import measure

CARRY = [
    "--policy",
    "carry",
    "--segment-length",
    "16",
    "--sink-length",
    "4",
    "--window-length",
    "44",
]
PAPER = [
    "--policy",
    "reencode",
    "--segment-length",
    "32",
    "--sink-length",
    "8",
    "--window-length",
    "24",
]
METHODS = "empty,full,streaming,edgeinfinite,snapkv,snapkv-unseen,pyramidkv,pyramidkv-unseen"
COUNT = sum(map(len, ROWS.values()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_longbench(tmp_path_factory.mktemp("longbench") / "data")


def longbench(checkpoint: Path, folder: Path, *more: str) -> int:
    command = ["evaluate", "longbench", "--model", str(checkpoint), "--data", str(folder)]
    return main([*command, *more])


def rows_of(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def test_every_row_is_answered_by_every_method(checkpoint, folder, tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert longbench(checkpoint, folder, *CARRY, "--methods", METHODS, "--json", str(out)) == 0
    rows, methods = rows_of(out), METHODS.split(",")
    assert len(rows) == COUNT * len(methods)
    assert {row["method"] for row in rows[:COUNT]} == {"empty"}  # first
    documented = [
        "method",
        "task",
        "row",
        "score",
        "answer_nats",
        "prompt_tokens",
        "state_bytes",
        "answer",
    ]
    assert documented == [name for name in rows[0] if name in documented]
    for row in rows:
        assert row["answer_nats"] > 0 and 0 <= row["score"] <= 1
        (source,) = (r for r in ROWS[row["task"]] if r["_id"] == row["row"])
        task, classes = TASKS[row["task"]], source["all_classes"] or ()
        assert row["score"] == score(task, row["answer"], source["answers"], classes)
        assert row["average_state_bytes"] <= row["peak_state_bytes"]
    by = {m: [r for r in rows if r["method"] == m] for m in methods}
    assert by["full"][0]["prompt_tokens"] > by["empty"][0]["prompt_tokens"]
    # The same slots: full attention's bytes grow, and so do the peaks of what reads all first.
    (ours,) = {row["state_bytes"] for row in by["edgeinfinite"]}
    for method in ("snapkv", "pyramidkv"):
        for row, full in zip(by[method], by["full"], strict=True):
            assert ours - 64 < row["state_bytes"] <= ours  # counters aside, it has no others
            assert row["peak_state_bytes"] == pytest.approx(full["peak_state_bytes"], 0.01)
            unseen = by[f"{method}-unseen"][by[method].index(row)]
            # A question longer than the slots, beside the least that a window needs.
            assert unseen["state_bytes"] >= row["state_bytes"]
    shown = capsys.readouterr()
    assert "| **overall**" in shown.out or "doesn't count" in shown.out
    assert "tokens/s" in shown.err


def test_a_killed_run_resumes_to_the_same_table(checkpoint, folder, tmp_path, monkeypatch, capsys):
    whole, out = tmp_path / "whole.json", tmp_path / "rows.json"
    more = [*CARRY, "--methods", "empty,full,streaming"]
    assert longbench(checkpoint, folder, *more, "--json", str(whole)) == 0
    expected = capsys.readouterr().out
    read, measured = [], measure._measure

    def stopped(reading, *arguments):
        if len(read) == 8:
            raise KeyboardInterrupt
        read.append(reading)
        return measured(reading, *arguments)

    monkeypatch.setattr(measure, "_measure", stopped)
    assert longbench(checkpoint, folder, *more, "--json", str(out)) == 130
    assert len(rows_of(out)) == 8
    read.clear()
    monkeypatch.setattr(measure, "_measure", lambda *a: read.append(a) or measured(*a))
    assert longbench(checkpoint, folder, *more, "--json", str(out)) == 0
    assert len(read) == 3 * COUNT - 8

    def timeless(rows):
        return [{k: v for k, v in row.items() if k != "first_token_s"} for row in rows]

    assert timeless(rows_of(out)) == timeless(rows_of(whole))
    got = capsys.readouterr().out
    assert got.partition("## ")[2] == expected.partition("## ")[2] != ""


def test_the_loss_alone_needs_no_answer_and_is_the_same(checkpoint, folder, tmp_path):
    out = [tmp_path / f"{name}.json" for name in ("both", "loss", "score")]
    for path, measures in zip(out, ("loss,score", "loss", "score"), strict=True):
        more = ["--methods", "edgeinfinite", "--measures", measures, "--json", str(path)]
        assert longbench(checkpoint, folder, *CARRY, *more) == 0
    both, loss, answered = map(rows_of, out)
    assert [r["answer_nats"] for r in loss] == [r["answer_nats"] for r in both]
    assert {r["answer"] for r in loss} == {None} == {r["score"] for r in loss}
    assert [r["answer"] for r in answered] == [r["answer"] for r in both]
    assert {r["answer_nats"] for r in answered} == {None}
    # What would mix rows with and without answers is refused.
    more = ["--methods", "edgeinfinite", "--measures", "loss", "--json", str(out[0])]
    assert longbench(checkpoint, folder, *CARRY, *more) == 2


def test_runs_over_different_rows_merge_to_one_table(checkpoint, folder, tmp_path, capsys):
    names = ("whole", "first", "second")
    out = {name: str(tmp_path / f"{name}.json") for name in names}
    shares = {"whole": "qasper,trec,lcc", "first": "qasper", "second": "trec,lcc"}
    tables = {}
    for name, tasks in shares.items():
        more = ["--methods", "empty,full", "--measures", "loss", "--tasks", tasks]
        assert longbench(checkpoint, folder, *CARRY, *more, "--json", out[name]) == 0
        tables[name] = capsys.readouterr().out
    assert main(["evaluate", "summary", out["first"], out["second"]]) == 0
    merged = capsys.readouterr().out
    assert merged.partition("## ")[2] == tables["whole"].partition("## ")[2] != ""
    assert main(["evaluate", "summary", out["first"], "--plot", str(tmp_path / "p.png")]) == 2
    assert "tables only" in capsys.readouterr().err


def test_artifacts_are_methods_and_answer_as_the_checkpoint_does(checkpoint, folder, tmp_path):
    artifact = tmp_path / "artifact"
    options = [*CARRY, "--gate", "none"]
    export = ["export", "--model", str(checkpoint), "--output", str(artifact), *options]
    assert main(export) == 0
    out = [tmp_path / "model.json", tmp_path / "artifact.json"]
    assert longbench(checkpoint, folder, *CARRY, "--methods", "edgeinfinite,empty",
                     "--json", str(out[0])) == 0  # fmt: skip
    command = ["evaluate", "longbench", "--data", str(folder), "--json", str(out[1])]
    assert main([*command, "--artifact", f"edgeinfinite={artifact}", "--threads", "1"]) == 0
    expected, got = map(rows_of, out)
    assert len(got) == 2 * COUNT
    by_key = {(r["method"], r["task"], r["row"]): r for r in expected}
    for row in got:
        model = by_key[row["method"], row["task"], row["row"]]
        if row["method"] == "empty" and row["prompt_tokens"] > 50:
            continue  # read with the artifact's 64 slots, not with full attention
        assert row["answer_nats"] == pytest.approx(model["answer_nats"], rel=1e-3)
        assert row["prompt_tokens"] == model["prompt_tokens"]
        assert row["answer"] == model["answer"]
    assert main([*command, "--artifact", str(artifact), "--policy", "carry"]) == 2
    assert main([*command, "--artifact", f"a={artifact}", f"a={artifact}"]) == 2


def test_the_papers_ablations_are_methods(checkpoint, folder, tmp_path, capsys):
    out = tmp_path / "rows.json"
    methods = "memory-off,untrained-gate,without-sinks,without-window,without-both"
    more = ["--measures", "loss", "--json", str(out)]
    assert longbench(checkpoint, folder, *PAPER, "--methods", methods, *more) == 0
    nats: dict[str, list[float]] = {}
    for row in rows_of(out):
        nats.setdefault(row["method"], []).append(round(row["answer_nats"], 3))
    # At one length two geometries may hold the same tokens; at all of the rows' lengths none do.
    assert len({tuple(values) for values in nats.values()}) == len(nats) == 5
    assert longbench(checkpoint, folder, *CARRY, "--methods", "without-sinks") == 2
    assert "--policy reencode" in capsys.readouterr().err


def test_rows_are_left_out_or_cut_as_asked(checkpoint, folder, tmp_path):
    out = tmp_path / "rows.json"
    more = ["--measures", "score", "--methods", "full,streaming", "--json", str(out), *CARRY]
    assert longbench(checkpoint, folder, *more, "--max-tokens", "200", "--cut-length", "120") == 0
    rows = rows_of(out)
    assert {row["task"] for row in rows} < set(LENGTHS)
    assert max(row["prompt_tokens"] for row in rows) <= 120
    # Rows may be added to; how they are read may not change.
    assert longbench(checkpoint, folder, *more, "--max-tokens", "999", "--cut-length", "120") == 0
    assert rows_of(out)[: len(rows)] == rows and len(rows_of(out)) == 2 * COUNT
    assert longbench(checkpoint, folder, *more, "--cut-length", "130") == 2


def test_one_method_may_be_cut_and_short_rows_left_out(checkpoint, folder, tmp_path):
    out = tmp_path / "rows.json"
    more = ["--methods", "full,streaming", "--measures", "loss", "--json", str(out)]
    more += ["--rows-per-task", "1", "--tasks", "qasper"]
    shorter, longer = ROWS["qasper"]
    assert longbench(checkpoint, folder, *CARRY, *more, "--cut-methods", "full=120") == 0
    assert {row["row"] for row in rows_of(out)} == {shorter["_id"]}
    tokens = {row["method"]: row["prompt_tokens"] for row in rows_of(out)}
    assert tokens["full"] <= 120 < tokens["streaming"]
    assert longbench(checkpoint, folder, *CARRY, *more) == 2  # rows of other cuts
    out.unlink()
    # The first row that is long enough counts as the first one.
    more += ["--min-tokens", str(tokens["streaming"] + 1)]
    assert longbench(checkpoint, folder, *CARRY, *more) == 0
    assert {row["row"] for row in rows_of(out)} == {longer["_id"]}


def test_full_attention_is_cut_to_the_positions_and_edgeinfinite_is_not(checkpoint, tmp_path):
    long = [dict(ROWS["qasper"][0], context="A dog went home. " * 60)]
    folder, out = tiny_longbench(tmp_path / "data", qasper=long), tmp_path / "rows.json"
    more = ["--methods", "full,snapkv,edgeinfinite", "--measures", "loss", "--json", str(out)]
    assert longbench(checkpoint, folder, *CARRY, *more) == 0
    tokens = {row["method"]: row["prompt_tokens"] for row in rows_of(out)}
    assert tokens["full"] == tokens["snapkv"] and 495 < tokens["full"] <= 512 - LENGTHS["qasper"]
    assert tokens["edgeinfinite"] > 1000


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--methods", "snap"], "unknown method 'snap'"),
        (["--tasks", "quasar"], "unknown task 'quasar'"),
        (["--measures", "f1"], "unknown measure 'f1'"),
        (["--max-tokens", "5"], "see --min-tokens and --max-tokens"),
        (["--cut-methods", "snapkv=90"], "snapkv isn't measured"),
        (["--methods", "snapkv", "--cache-type", "int8"], "choose float16"),
        (["--json", "nowhere/rows.json"], "create it first"),
    ],
)
def test_bad_input_is_one_line(checkpoint, folder, capsys, monkeypatch, tmp_path, more, says):
    monkeypatch.chdir(tmp_path)
    assert longbench(checkpoint, folder, *CARRY, *more) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and says in error
    assert not list(tmp_path.iterdir())
