"""`edgeinfinite lm-eval`: tasks of lm-evaluation-harness, on a checkpoint and on an artifact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("lm_eval")

from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from edgeinfinite.cli import main
from edgeinfinite.cli.lm_eval import result_rows
from edgeinfinite.evaluation.harness import HarnessModel
from edgeinfinite.models.checkpoint.loading import load_backbone

CARRY = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
CARRY += ["--window-length", "300"]
TASK = """\
task: tiny_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{story}}}} Who?"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{label}}}}"
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> Path:
    """A folder with a task over rows of its own, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = folder / "rows.json"
    stories = [
        {"story": f"The {animal} went {way}.", "choices": ["a dog", "a cat", "an owl"], "label": i}
        for i, animal in enumerate(("dog", "cat", "owl"))
        for way in ("home", "away", "up", "down")
    ]
    rows.write_text(json.dumps(stories))
    (folder / "tiny_choice.yaml").write_text(TASK.format(rows=rows))
    return folder


def figures(path: Path) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in json.loads(path.read_text())["rows"]}


def test_a_task_gives_the_hf_models_results(checkpoint, tasks, tmp_path, capsys, monkeypatch):
    backbone = load_backbone(str(checkpoint))
    theirs = simple_evaluate(
        model=HFLM(pretrained=backbone.model, tokenizer=backbone.tokenizer, device="cpu"),
        tasks=["tiny_choice"],
        task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
    )
    out = [tmp_path / "model.json", tmp_path / "artifact.json"]
    common = ["--tasks", "tiny_choice", "--include-path", str(tasks)]
    command = ["lm-eval", "--model", str(checkpoint), *CARRY, *common]
    assert main([*command, "--json", str(out[0])]) == 0
    assert "tiny_choice" in capsys.readouterr().out
    expected = theirs["results"]["tiny_choice"]["acc,none"]
    assert 0 < expected < 1 and figures(out[0])["acc"] == pytest.approx(expected)

    artifact = tmp_path / "artifact"
    export = ["export", "--model", str(checkpoint), "--gate", "none", *CARRY]
    assert main([*export, "--output", str(artifact)]) == 0
    command = ["lm-eval", "--model", str(artifact), *common, "--threads", "1"]
    assert main([*command, "--json", str(out[1])]) == 0
    assert figures(out[1])["acc"] == pytest.approx(expected)
    for own in (["--policy", "carry"], ["--cache-type", "float16"]):
        assert main([*command, *own]) == 2
        assert f"an artifact has its own; leave {own[0]} out" in capsys.readouterr().err


def test_rows_have_metrics_and_errors_for_requested_lengths_only():
    results = {
        "niah_single_1": {"alias": "niah", "4096,none": 0.5, "4096_stderr,none": "N/A",
                          "8192,none": -1},
        "arc": {"acc,none": 0.25, "acc_stderr,none": 0.1},
    }  # fmt: skip
    assert result_rows(results) == [
        {"task": "niah_single_1", "metric": "4096", "filter": "none", "value": 0.5, "stderr": None},
        {"task": "arc", "metric": "acc", "filter": "none", "value": 0.25, "stderr": 0.1},
    ]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--tasks", "no_such_task"], "no task 'no_such_task'"),
        (["--tasks", "tiny_choice", "--method", "snapkv-unseen"], "unknown method 'snapkv-unseen'"),
        (
            ["--tasks", "tiny_choice", "--method", "snapkv", "--cache-type", "int8"],
            "snapkv and pyramidkv have no int8 cache",
        ),
        (["--tasks", "tiny_choice", "--method", "empty"], "asks RULER's questions alone"),
        (["--tasks", "tiny_choice", "--json", "nowhere/rows.json"], "create it first"),
    ],
)
def test_bad_input_is_one_line(checkpoint, tasks, capsys, more, says):
    command = ["lm-eval", "--model", str(checkpoint), "--include-path", str(tasks), *CARRY, *more]
    assert main(command) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and says in error


def test_a_task_of_ruler_runs_at_1k_without_a_download(checkpoint, tmp_path, capsys, monkeypatch):
    import nltk

    def refuse(*wanted, **more):
        raise AssertionError(f"{wanted} is fetched")

    monkeypatch.setattr(nltk, "download", refuse)
    out = tmp_path / "rows.json"
    command = ["lm-eval", "--model", str(checkpoint), *CARRY, "--tasks", "niah_multikey_2"]
    command += ["--lengths", "1024", "--limit", "2", "--gold-loss", "--json", str(out)]
    assert main(command) == 0
    found = figures(out)
    assert list(found) == ["1024", "1024_nats"] and found["1024_nats"] > 0
    nats = f"| niah_multikey_2 | 1,024 | {found['1024_nats']:.2f} ±"
    assert nats in capsys.readouterr().out


def test_ruler_is_asked_without_its_texts(checkpoint, tmp_path, monkeypatch):
    read: list[str] = []
    encode = HarnessModel.tok_encode

    def noted(model, string, *more, **named):
        read.append(string)
        return encode(model, string, *more, **named)

    monkeypatch.setattr(HarnessModel, "tok_encode", noted)
    out = tmp_path / "rows.json"
    command = ["lm-eval", "--model", str(checkpoint), *CARRY, "--tasks", "niah_single_1"]
    command += ["--method", "empty", "--lengths", "1024", "--limit", "2", "--gold-loss"]
    assert main([*command, "--json", str(out)]) == 0
    assert figures(out)["1024_nats"] > 0
    questions = [text for text in read if "special magic" in text]
    assert len(questions) >= 2
    for question in questions:
        assert question.startswith("What is the special magic number for ")
        assert len(question) < 200
