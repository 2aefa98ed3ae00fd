"""`edgeinfinite generate` as a user runs it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from manifest_edit import edit_manifest

from edgeinfinite.artifact.manifest import file_entry
from edgeinfinite.cli import main
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer
from edgeinfinite.version import __version__

LONG = "It was a bright cold day in April, and the clocks were striking thirteen. " * 3
ENDLESS = ["--raw", "--prompt", "abc", "--max-new-tokens", "10000000", "--temperature", "3"]
ENDLESS += ["--logit-bias", "1=-100", "--repetition-detection", "off"]  # nothing ends it


def _row(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["command"], document["version"]) == ("generate", __version__)
    (row,) = document["rows"]
    return row


def test_generate_streams_the_greedy_answer_of_a_long_prompt(
    artifact: Path,
    tmp_path: Path,
    greedy_answer: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, rows = tmp_path / "long.txt", tmp_path / "rows.json"
    file.write_text(LONG, encoding="utf-8")
    command = ["generate", str(artifact), "--prompt-file", str(file), "--greedy"]
    command += ["--max-new-tokens", "40"]
    assert main([*command, "--stats", "--stats-json", str(rows)]) == 0

    tokens = load_tokenizer(artifact).encode_chat([{"role": "user", "content": LONG}])
    session = Session(load_engine(artifact))
    expected = greedy_answer(session, tokens, artifact, 40)
    printed = capsys.readouterr()
    assert printed.out == expected + "\n"
    row = _row(rows)
    assert row["text"] == expected
    assert (row["prompt_tokens"], row["engine"]) == (len(tokens), "onnx")
    assert row["compressions"] == session.compressions > 5
    assert (row["state_bytes"], row["artifact"]) == (session.state_bytes, str(artifact))
    assert f"{len(tokens):,} tokens" in printed.err and "first token after" in printed.err


def test_a_prompt_in_a_file_is_the_same_as_on_the_command_line(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(b"\xef\xbb\xbf" + "Wie heißt du? 你好".encode())  # with a byte order mark
    command = ["generate", str(artifact), "--greedy", "--max-new-tokens", "5"]
    assert main([*command, "--prompt-file", str(file)]) == 0
    from_file = capsys.readouterr().out
    assert main([*command, "--prompt", "Wie heißt du? 你好"]) == 0
    assert capsys.readouterr().out == from_file


def test_raw_sends_the_text_without_the_chat_template(artifact: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    command = ["generate", str(artifact), "--prompt", "abc", "--max-new-tokens", "1"]
    assert main([*command, "--raw", "--stats-json", str(rows)]) == 0
    assert _row(rows)["prompt_tokens"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], 48),
        (["--greedy", "--repetition-detection", "on"], 48),
        (["--repetition-detection", "off"], 60),
        (["--greedy"], 60),
    ],
)
def test_an_answer_that_repeats_itself_ends_and_says_so(
    artifact: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: int,
) -> None:
    rows = tmp_path / "rows.json"
    command = ["generate", str(artifact), "--raw", "--prompt", "abc", "--max-new-tokens", "60"]
    command += ["--logit-bias", "70=100", "--stats-json", str(rows)]
    assert main([*command, *options]) == 0
    ended = said == 48
    assert ("repeated itself" in capsys.readouterr().err) == ended
    row = _row(rows)
    assert (row["new_tokens"], row["finish"]) == (said, "repetition" if ended else "length")


@pytest.mark.parametrize("system", ["Be brief.", ""])
@pytest.mark.parametrize("prefill", [None, "Yes"])
def test_a_system_prompt_stands_before_the_message(
    artifact: Path, tmp_path: Path, system: str, prefill: str | None
) -> None:
    rows = tmp_path / "rows.json"
    command = ["generate", str(artifact), "--prompt", "abc", "--max-new-tokens", "1"]
    command += ["--system", system, "--stats-json", str(rows)]
    assert main([*command, *(["--prefill", prefill] if prefill else [])]) == 0
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "abc"}]
    messages += [{"role": "assistant", "content": prefill}] if prefill else []
    tokens = load_tokenizer(artifact).encode_chat(messages, continues=prefill is not None)
    assert _row(rows)["prompt_tokens"] == len(tokens)


def test_a_system_prompt_that_no_template_would_tell_is_refused(
    artifact: Path, base_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["--prompt", "abc", "--system", "Be brief."]
    for command, said in (
        ([str(artifact), "--raw"], "--system is told by the chat template, which --raw leaves out"),
        ([str(base_artifact)], "a system prompt needs a chat template, and this artifact has none"),
    ):
        assert main(["generate", *command, *ask]) == 2
        printed = capsys.readouterr()
        assert said in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_without_a_chat_template_the_text_is_continued_with_a_note(
    base_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["generate", str(base_artifact), "--greedy", "--prompt", "abc"]
    command += ["--max-new-tokens", "9"]
    assert main(command) == 0
    unasked = capsys.readouterr()
    assert main([*command, "--raw"]) == 0
    asked = capsys.readouterr()
    assert unasked.out == asked.out
    assert "no chat template" in unasked.err and not asked.err


def test_a_seed_fixes_the_sampled_answer(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(seed: str) -> str:
        sampling = ["--temperature", "1.5", "--top-k", "50", "--top-p", "0.95", "--seed", seed]
        command = ["generate", str(artifact), "--prompt", "abc", "--max-new-tokens", "20"]
        assert main([*command, *sampling, "--threads", "1"]) == 0
        return capsys.readouterr().out

    assert answer("1") == answer("1") != answer("2")


def test_the_defaults_are_a_chats_and_greedy_is_an_option(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recommended = tmp_path / "recommended"
    shutil.copytree(artifact, recommended)
    config = recommended / "generation_config.json"
    fields = json.loads(config.read_text("utf-8")) | {"do_sample": True, "temperature": 2.5}
    config.write_text(json.dumps(fields), "utf-8")
    entry = dataclasses.asdict(file_entry(config))
    edit_manifest(recommended, lambda fields: fields["files"].update({config.name: entry}))

    def answer(folder: Path, *options: str) -> str:
        command = ["generate", str(folder), "--prompt", "abc", "--max-new-tokens", "20"]
        assert main([*command, "--threads", "1", *options]) == 0
        return capsys.readouterr().out

    likeliest = answer(artifact, "--greedy")
    assert likeliest == answer(recommended, "--greedy")
    named = ("--temperature", "0.3", "--top-p", "0.9", "--repetition-penalty", "1.1")
    assert answer(artifact, "--seed", "4") == answer(artifact, "--seed", "4", *named)
    hot = ("--temperature", "2.5", "--top-p", "1", "--repetition-penalty", "1")
    assert answer(recommended, "--seed", "4") == answer(artifact, "--seed", "4", *hot) != likeliest


def test_greedy_with_a_temperature_is_refused(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["generate", str(artifact), "--prompt", "abc", "--greedy", "--temperature", "1"]
    assert main(command) == 2
    assert "leave --temperature out" in capsys.readouterr().err


def test_generate_needs_neither_torch_nor_transformers(artifact: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from edgeinfinite.cli import main\n"
        f"sys.exit(main(['generate', {str(artifact)!r}, '--prompt', 'abc', "
        "'--max-new-tokens', '3']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout


def test_ctrl_c_ends_the_answer_and_the_partial_answer_is_counted(
    artifact: Path, tmp_path: Path, start: Any
) -> None:
    rows = tmp_path / "rows.json"
    for _ in range(5):  # a random model may end its answer, and the program, before the signal
        process = start("generate", str(artifact), *ENDLESS, "--stats-json", str(rows))
        assert process.stdout is not None
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        if process.returncode != 130:
            break
    assert process.returncode == 0, errors.decode()
    row = _row(rows)
    assert (first + rest).decode("utf-8") == row["text"] + "\n"
    assert row["new_tokens"] == len(row["token_ids"]) > 0


def test_a_reader_that_goes_away_ends_the_answer_without_a_traceback(
    artifact: Path, start: Any
) -> None:
    process = start("generate", str(artifact), *ENDLESS)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == b""


def test_figures_for_standard_output_follow_the_answer(
    artifact: Path, tmp_path: Path, start: Any
) -> None:
    command = ("generate", str(artifact), "--prompt", "hello", "--max-new-tokens", "3")
    process = start(*command, "--stats-json", "/dev/stdout")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    answer, _, rows = output.decode().partition("\n{")
    assert json.loads("{" + rows)["rows"][0]["text"] == answer
