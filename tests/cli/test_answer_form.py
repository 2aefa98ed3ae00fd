"""`edgeinfinite generate` with stop strings, grammars, penalties and log-probabilities."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

LETTERS = ["--regex", "[ab]{20}", "--temperature", "1", "--seed", "3"]


def run(
    capsys: pytest.CaptureFixture[str], artifact: Path, *options: str, code: int = 0
) -> tuple[str, str]:
    assert main(["generate", str(artifact), "--prompt", "abc", *options]) == code
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_the_answer_matches_the_pattern_and_ends_before_the_first_stop_string(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free, _ = run(capsys, artifact, *LETTERS)
    assert re.fullmatch("[ab]{20}\n", free)
    early, late = free[6:9], free[12:16]
    stopped, _ = run(capsys, artifact, *LETTERS, "--stop", late, "--stop", early)
    assert stopped == free[: min(free.index(early), free.index(late))] + "\n"


def test_the_answer_is_json_of_a_schema_in_a_file(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "array", "items": {"enum": ["ä", 1]}, "minItems": 2, "maxItems": 2}')
    answer, _ = run(capsys, artifact, "--json-schema", str(file))
    pair = json.loads(answer)
    assert len(pair) == 2 and set(pair) <= {"ä", 1}


def test_log_probabilities_stand_in_the_row(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.json"

    def row(*options: str) -> dict[str, Any]:
        command = ["--stats-json", str(rows), "--max-new-tokens", "4", *options]
        run(capsys, artifact, *LETTERS, *command)
        return dict(json.loads(rows.read_text())["rows"][0])

    found = row("--logprobs", "2")
    assert [one["token"] for one in found["logprobs"]] == found["token_ids"]
    assert all(len(one["top"]) == 2 and one["logprob"] < 0 for one in found["logprobs"])
    assert [one["top"] for one in row("--logprobs", "0")["logprobs"]] == [[]] * 4
    assert row()["logprobs"] is None


def test_bias_and_penalties_change_the_greedy_answer(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    q, z = load_tokenizer(artifact).encode_text("QZ")

    def answer(bias_of_z: str, *penalty: str) -> str:
        biases = ["--logit-bias", f"{q}=50", "--logit-bias", f"{z}={bias_of_z}"]
        return run(capsys, artifact, "--regex", "[QZ]{20}", *biases, *penalty)[0]

    assert answer("-100") == "Q" * 20 + "\n"
    assert answer("100") == "Z" * 20 + "\n"
    assert answer("40", "--repetition-penalty", "9").startswith("QZ")
    assert answer("40", "--presence-penalty", "20").startswith("QZQ")
    in_turn = answer("50", "--frequency-penalty", "40")
    assert in_turn.count("Q") == in_turn.count("Z") == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stop", ""], "a stop string is empty"),
        (["--regex", "(a"], "regular expression '(a' can't be used: unclosed group"),
        (["--json-schema", "bad.json"], "the JSON schema isn't JSON"),
        (["--json-schema", "nowhere.json"], "nowhere.json"),
        (["--logit-bias", "999=1"], "logit-bias has token 999, outside the vocabulary of 258"),
        (["--min-p", "2"], "min-p is 2.0"),
    ],
)
def test_what_is_wrong_is_one_line(
    artifact: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text('{"type":')
    output, error = run(capsys, artifact, *options, code=2)
    assert (output, error.count("\n")) == ("", 1)
    assert error.startswith("edgeinfinite: error: ") and message in error


@pytest.mark.parametrize(
    "options",
    [["--logit-bias", "x=1"], ["--logit-bias", "3"], ["--logit-bias", "3=nan"], ["--logprobs=-1"]],
)
def test_options_that_cannot_be_parsed_are_refused(artifact: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", str(artifact), "--prompt", "abc", *options])
    assert caught.value.code == 2
