"""`--engine mom`: the checkpoint's own answers, and one line for every mistake."""

from __future__ import annotations

import io
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_artifact import tiny_checkpoint
from transformers import LogitsProcessorList, RepetitionPenaltyLogitsProcessor

from edgeinfinite.cli import main
from edgeinfinite.export.exact import open_exact
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions

LONG = "It was a bright cold day in April, and the clocks were striking. "


def expected_answer(checkpoint: Path, tokens: list[int], count: int) -> tuple[str, list[int]]:
    """transformers' own greedy answer: its text and its tokens."""
    backbone = load_backbone(str(checkpoint))
    ids = torch.tensor([tokens])
    answer = backbone.model.generate(ids, max_new_tokens=count, do_sample=False)[0, len(tokens) :]
    text = backbone.tokenizer.decode(answer, skip_special_tokens=True)
    return text.rstrip("\ufffd"), answer.tolist()


def chat_tokens(checkpoint: Path, message: str) -> list[int]:
    tokenizer = load_backbone(str(checkpoint)).tokenizer
    turn = [{"role": "user", "content": message}]
    return list(tokenizer.apply_chat_template(turn, add_generation_prompt=True)["input_ids"])


def test_the_answer_is_that_of_transformers(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message, rows = LONG * 5, tmp_path / "rows.json"
    tokens = chat_tokens(checkpoint, message)
    command = ["generate", str(checkpoint), "--engine", "mom", "--prompt", message]
    command += ["--max-new-tokens", "24", "--chunk", "64", "--offload-folder", str(tmp_path)]
    assert main([*command, "--greedy", "--stats-json", str(rows)]) == 0
    text, answer = expected_answer(checkpoint, tokens, 24)
    assert capsys.readouterr().out == f"{text}\n"
    row = json.loads(rows.read_text())["rows"][0]
    assert (row["engine"], row["prompt_tokens"]) == ("mom", len(tokens))
    assert row["token_ids"] == [token for token in answer if token != 1]
    assert row["state_bytes"] >= len(tokens) * 2 * 2 * 2 * 8 * 4
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]


def test_a_chat_goes_on_with_the_whole_conversation_and_reset_starts_over(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chat(*lines: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        command = ["chat", str(checkpoint), "--engine", "mom", "--max-new-tokens", "8"]
        command += ["--temperature", "0", "--repetition-penalty", "1"]
        assert main(command) == 0
        return capsys.readouterr().out.split("\n")

    first, second = chat("hello")[0], chat("hello", LONG)[1]
    assert chat("hello", LONG, "/reset", "hello") == [first, second, first, ""]
    head = chat_tokens(checkpoint, "hello")
    _, answer = expected_answer(checkpoint, head, 8)
    turn = f"<|im_end|>\n<|im_start|>user\n{LONG.strip()}<|im_end|>\n<|im_start|>assistant\n"
    tokenizer: Any = load_backbone(str(checkpoint)).tokenizer
    whole = head + answer + tokenizer(turn, add_special_tokens=False)["input_ids"]
    assert second == expected_answer(checkpoint, whole, 8)[0]


def test_turns_are_taken_back_and_answered_again(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chat(*lines: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        command = ["chat", str(checkpoint), "--engine", "mom", "--max-new-tokens", "8"]
        assert main([*command, "--temperature", "0", "--repetition-penalty", "1"]) == 0
        return capsys.readouterr().out.split("\n")

    first, then = chat("hello", "and then?")[:2]
    assert chat("hello", LONG, "/undo", "and then?")[2] == then
    assert chat("hello", LONG, LONG, "/undo", "/undo", "/undo", "hello")[3] == first
    assert chat("hello", "/regenerate")[1] == first
    assert chat("hello", LONG, "/edit and then?")[2] == then
    assert chat("hello", "/reset", "hello", "/undo", "/undo", "and then?")[2] == then


def test_penalties_count_the_answer_alone_as_transformers_would_without_the_prompt(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = chat_tokens(checkpoint, LONG)
    backbone = load_backbone(str(checkpoint))
    penalty = RepetitionPenaltyLogitsProcessor(2.0, prompt_ignore_length=len(tokens))
    whole = backbone.model.generate(
        torch.tensor([tokens]),
        max_new_tokens=12,
        do_sample=False,
        logits_processor=LogitsProcessorList([penalty]),
    )
    text = backbone.tokenizer.decode(whole[0, len(tokens) :], skip_special_tokens=True)
    command = ["generate", str(checkpoint), "--engine", "mom", "--prompt", LONG]
    command += ["--max-new-tokens", "12", "--repetition-penalty", "2"]
    assert main([*command, "--greedy"]) == 0
    assert capsys.readouterr().out == text.rstrip("\ufffd") + "\n"


def test_a_stop_string_is_taken_back(checkpoint: Path) -> None:
    conversation = open_exact(str(checkpoint), chunk=64)
    session, prompt = conversation.session, conversation.turn("abc")

    def letters(*stop: str) -> str:
        grammar = conversation.guidance.regex("[ab]{20}")
        sampler = Sampler(SamplingOptions(temperature=1, seed=2))
        return "".join(conversation.answer(prompt, sampler=sampler, stop=stop, grammar=grammar))

    back = session.mark()
    free = letters()
    back()
    assert (session.tokens_read, session.residual) == (0, [])
    stop = free[7:10]
    assert letters(stop) == free[: free.index(stop)]
    read = prompt + conversation.tokenizer.encode_text(free[: free.index(stop)])
    assert (session.residual, session.tokens_read) == (read, len(read))


def test_half_precision_and_a_seed_give_one_answer(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(seed: str) -> str:
        command = ["generate", str(checkpoint), "--engine", "mom", "--prompt", "abc"]
        command += ["--dtype", "bfloat16", "--temperature", "1.5", "--seed", seed]
        assert main([*command, "--max-new-tokens", "20"]) == 0
        return capsys.readouterr().out

    assert answer("1") == answer("1") != answer("2")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["chat", "--engine", "mom", "--session", "s"], "--session is for a state of fixed size"),
        (["generate", "--engine", "mom", "--prompt", "a", "--from", "s"], "--from is for a state"),
        (["serve", "--engine", "mom", "--cache-dir", "s"], "--cache-dir is for a state"),
        (["serve", "--engine", "mom", "--cache-mb", "9"], "--cache-mb is for a state"),
        (["serve", "--chunk", "8"], "--chunk belongs to --engine mom"),
        (["generate", "--prompt", "a", "--dtype", "bfloat16"], "--dtype belongs to --engine mom"),
        (["generate", "--prompt", "a", "--chunk", "8"], "--chunk belongs to --engine mom"),
        (
            ["generate", "--prompt", "a", "--engine", "mom", "--offload-folder", "nowhere"],
            "--offload-folder nowhere isn't a folder; create it",
        ),
        (
            ["generate", "--prompt", "a" * 600, "--engine", "mom"],
            "was trained on 512 positions; exact attention ends there: shorten the text",
        ),
    ],
    ids=["session", "from", "cache-dir", "cache-mb", "serve", "dtype", "chunk", "folder", "length"],
)
def test_mistakes_are_one_line(
    command: list[str],
    message: str,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command[:1], str(checkpoint), *command[1:]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("edgeinfinite: error: ") and message in line


def test_a_checkpoint_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "./nowhere", "--engine", "mom", "--prompt", "a"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "nowhere" in line


def test_ctrl_c_while_reading_ends_with_the_prompt_unread_and_no_file(
    tmp_path: Path, start: Any
) -> None:
    checkpoint = tiny_checkpoint(tmp_path / "tiny", 2, _long_model())
    folder = tmp_path / "cache"
    folder.mkdir()
    text = tmp_path / "long.txt"
    text.write_text(LONG * 300)
    command = ("generate", str(checkpoint), "--engine", "mom", "--prompt-file", str(text))
    process = start(*command, "--chunk", "8", "--offload-folder", str(folder))
    while process.poll() is None and not _holds_a_file_in(process.pid, folder):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert output == b"\n" and b"tokens of the message unread" in errors
    assert not list(folder.iterdir())


def _long_model() -> Any:
    from tiny import tiny_llama

    model = tiny_llama(vocabulary=258)
    model.config.max_position_embeddings = 1_000_000
    return model


def _holds_a_file_in(pid: int, folder: Path) -> bool:
    try:
        links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(link.startswith(str(folder)) for link in links)
