"""`edgeinfinite read`, `sessions` and `generate --from`."""

from __future__ import annotations

import hashlib
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_documents import epub, pdf

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.cli import main

SENTENCE = "It was a bright cold day in April, and the clocks were striking thirteen. "
LONG = SENTENCE * 5
ASK = ["--prompt", "What was striking?", "--max-new-tokens", "12", "--greedy"]


def _read(artifact: Path, document: Path, output: Path, *options: str) -> int:
    return main(["read", str(artifact), str(document), "--output", str(output), *options])


@pytest.fixture
def document(tmp_path: Path) -> Path:
    (tmp_path / "april.txt").write_text(LONG)
    return tmp_path / "april.txt"


def test_a_document_is_read_once_and_asked_often(
    artifact: Path, document: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "april.session"
    assert _read(artifact, document, file) == 0
    assert "tokens of april.txt in a state of" in capsys.readouterr().out
    before = file.read_bytes()

    assert main(["generate", str(artifact), "--from", str(file), *ASK]) == 0
    first = capsys.readouterr().out
    assert main(["generate", str(artifact), "--from", str(file), *ASK]) == 0
    assert capsys.readouterr().out == first
    assert file.read_bytes() == before, "the file stays as it was"
    assert sorted(tmp_path.iterdir()) == [file, document]

    at_once = f"{LONG.strip()}\n\nWhat was striking?"
    assert main(["generate", str(artifact), "--prompt", at_once, *ASK[2:]]) == 0
    assert capsys.readouterr().out == first, "as if document and question were one prompt"


def test_a_document_is_read_behind_a_system_prompt(
    artifact: Path, document: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, told = tmp_path / "april.session", ["--system", "Be brief."]
    assert _read(artifact, document, file, *told) == 0
    capsys.readouterr()
    generate = ["generate", str(artifact), *ASK[2:], *told]
    assert main([*generate, *ASK[:2], "--from", str(file)]) == 0
    answer = capsys.readouterr().out
    assert main([*generate, "--prompt", f"{LONG.strip()}\n\nWhat was striking?"]) == 0
    assert capsys.readouterr().out == answer, "as if all had been one prompt"

    assert _read(artifact, document, file, *told) == 0
    assert "april.txt was read before" in capsys.readouterr().out
    for other, said in (([], "was read with --system"), (["--system", ""], "began with another")):
        assert _read(artifact, document, file, *other) == 2
        assert said in capsys.readouterr().err
    assert _read(artifact, document, tmp_path / "b.session", "--raw", *told) == 2
    assert "--raw leaves out" in capsys.readouterr().err
    assert _read(artifact, document, tmp_path / "raw.session", "--raw") == 0
    assert main([*generate, *ASK[:2], "--from", str(tmp_path / "raw.session")]) == 2
    assert "was read with --raw" in capsys.readouterr().err


def test_a_document_that_was_read_is_not_read_again_and_another_is_refused(
    artifact: Path, document: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "april.session"
    assert _read(artifact, document, file) == 0
    before = file.read_bytes()
    capsys.readouterr()
    assert _read(artifact, document, file) == 0
    assert "april.txt was read before" in capsys.readouterr().out
    assert _read(artifact, document, file, "--raw") == 2
    assert "was read without --raw" in capsys.readouterr().err
    (tmp_path / "may.txt").write_text("May.")
    assert _read(artifact, tmp_path / "may.txt", file) == 2
    error = capsys.readouterr().err
    assert "holds another document, april.txt" in error and error.count("\n") == 1
    assert file.read_bytes() == before


def _content(path: Path) -> dict[str, Any]:
    file = read_session_file(path)
    return {**file.tensors, "header": file.header, "metadata": file.metadata}


def test_a_reading_that_was_killed_goes_on_and_equals_one_at_once(
    artifact: Path, tmp_path: Path, start: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    document, file = tmp_path / "long.txt", tmp_path / "killed.session"
    document.write_text(SENTENCE * 800)  # tokens are bytes: saved about 15 times
    kills = 0
    for _ in range(4):
        process = start("read", str(artifact), str(document), "--output", str(file))
        seen = _digest(file)
        while process.poll() is None and _digest(file) == seen:
            time.sleep(0.002)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert main(["sessions", str(tmp_path)]) == 0
        assert " of 59," in capsys.readouterr().out
    assert kills >= 2
    assert _read(artifact, document, file) == 0
    assert _read(artifact, document, tmp_path / "once.session") == 0
    resumed, at_once = _content(file), _content(tmp_path / "once.session")
    assert resumed.keys() == at_once.keys()
    for name, value in resumed.items():
        np.testing.assert_array_equal(value, at_once[name], err_msg=name)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_reading_that_is_stopped_is_saved(
    artifact: Path, tmp_path: Path, start: Any, number: int, code: int
) -> None:
    document, file = tmp_path / "long.txt", tmp_path / "stopped.session"
    document.write_text(SENTENCE * 800)
    process = start("read", str(artifact), str(document), "--output", str(file))
    while not file.exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"the same command goes on there" in errors
    assert sorted(tmp_path.iterdir()) == [document, file]
    header = read_session_file(file).header
    assert 0 < header.tokens_read < 59_000


def test_books_and_papers_are_read_too(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.epub").write_bytes(epub(f"<p>{LONG}</p>", title="Nineteen"))
    (tmp_path / "half.pdf").write_bytes(pdf("A page.", ""))
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    assert _read(artifact, tmp_path / "book.epub", tmp_path / "book.session") == 0
    assert _read(artifact, tmp_path / "half.pdf", tmp_path / "half.session") == 0
    assert "1 of 2 pages of half.pdf have no text" in capsys.readouterr().err
    assert _read(artifact, tmp_path / "scan.pdf", tmp_path / "scan.session") == 2
    assert "probably scanned" in capsys.readouterr().err
    assert not (tmp_path / "scan.session").exists()
    (tmp_path / "bad.session").write_bytes(b"no session")
    assert main(["sessions", str(tmp_path)]) == 0
    head, bad, book, half = capsys.readouterr().out.splitlines()
    assert head.split() == ["FILE", "MODEL", "TOKENS", "MB", "SAVED", "DOCUMENT"]
    assert "bad.session" in bad and "can't be read" in bad
    assert book.startswith("book.session") and book.endswith("Nineteen")
    assert half.startswith("half.session") and half.endswith("half.pdf")


def test_a_prompt_file_may_be_any_document(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "question.pdf").write_bytes(pdf("What was striking?"))
    (tmp_path / "latin1.txt").write_bytes("Où était le café ?".encode("latin-1"))
    command = ["generate", str(artifact), "--greedy", "--max-new-tokens", "6"]
    assert main([*command, "--prompt-file", str(tmp_path / "question.pdf")]) == 0
    from_file = capsys.readouterr().out
    assert main([*command, "--prompt", "What was striking?"]) == 0
    assert capsys.readouterr().out == from_file
    assert main([*command, "--prompt-file", str(tmp_path / "latin1.txt")]) == 0
    assert "which is a guess" in capsys.readouterr().err


def test_a_raw_reading_is_continued_as_text(
    artifact: Path, document: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "raw.session"
    assert _read(artifact, document, file, "--raw") == 0
    capsys.readouterr()
    command = ["generate", str(artifact), "--greedy", "--max-new-tokens", "8"]
    assert main([*command, "--from", str(file), "--prompt", "Then"]) == 0
    printed = capsys.readouterr()
    assert "was read with --raw, so the text is continued" in printed.err
    assert main([*command, "--raw", "--prompt", f"{LONG}Then"]) == 0
    assert capsys.readouterr().out == printed.out
    assert main(["chat", str(artifact), "--from", str(file)]) == 2
    assert "was read with --raw, so it has no turns" in capsys.readouterr().err


def test_a_base_model_reads_without_a_template_and_says_so(
    base_artifact: Path, document: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "april.session"
    for expected in ("no chat template", "was read before"):
        assert _read(base_artifact, document, file) == 0
        printed = capsys.readouterr()
        assert expected in printed.err + printed.out
    assert main(["generate", str(base_artifact), "--from", str(file), *ASK]) == 0


def test_sessions_of_an_empty_folder_are_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "" and "there is no session file" in printed.err
