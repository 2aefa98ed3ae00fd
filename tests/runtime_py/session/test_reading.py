"""A document read into a session file: saved on the way, resumed, listed."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from greedy import open_greedy
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.session.listing import sessions_in
from edgeinfinite.runtime_py.session.reading import (
    SaveEvery,
    begin_reading,
    continue_reading,
    document_in,
)
from edgeinfinite.runtime_py.session.session import Cancelled

TEXT = "It was a bright cold day in April, and the clocks were striking thirteen. " * 6
QUESTION = "What was striking?"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("reading") / "artifact")


def begun(artifact: Path, *, raw: bool = False) -> Conversation:
    conversation = open_greedy(artifact)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    begin_reading(conversation, TEXT, name="april.txt", title="April", sha256=digest, raw=raw)
    return conversation


def same_content(one: Path, other: Path) -> bool:
    """Every array and every counter, and what the files say of themselves."""
    first, second = read_session_file(one), read_session_file(other)
    return (
        first.header == second.header
        and first.metadata == second.metadata
        and first.tensors.keys() == second.tensors.keys()
        and all(np.array_equal(first.tensors[n], second.tensors[n]) for n in first.tensors)
    )


def test_a_reading_is_asked_like_one_prompt(artifact: Path, tmp_path: Path) -> None:
    conversation = begun(artifact)
    continue_reading(conversation, tmp_path / "april.session")

    from_file = open_greedy(artifact, session=tmp_path / "april.session")
    assert from_file.document is not None and from_file.document.name == "april.txt"
    answered = "".join(from_file.ask(QUESTION, max_new_tokens=12))

    anew = open_greedy(artifact)
    assert answered == "".join(anew.ask(f"{TEXT.strip()}\n\n{QUESTION}", max_new_tokens=12))
    assert from_file.session.tokens_read == anew.session.tokens_read
    assert from_file.session.residual == anew.session.residual
    assert not from_file.message_is_open


def test_a_reading_that_was_stopped_again_and_again_equals_one_at_once(
    artifact: Path, tmp_path: Path
) -> None:
    continue_reading(begun(artifact), tmp_path / "once")
    path = tmp_path / "often"
    conversation = begun(artifact)
    conversation.session.chunk_length = 16
    stops = 0
    while True:
        before = conversation.session.tokens_read
        try:
            continue_reading(
                conversation,
                path,
                cancelled=lambda: conversation.session.tokens_read >= before + 40,  # noqa: B023
            )
            break
        except Cancelled:
            stops += 1
            conversation = open_greedy(artifact, session=path)
            conversation.session.chunk_length = 16
    assert stops > 5
    at_once = begun(artifact)
    at_once.session.chunk_length = 16
    continue_reading(at_once, tmp_path / "once")
    assert same_content(path, tmp_path / "once")


def test_saving_on_the_way_changes_nothing(artifact: Path, tmp_path: Path) -> None:
    continue_reading(begun(artifact), tmp_path / "rarely")
    conversation, saved = begun(artifact), 0
    original = conversation.save

    def save(path: Path) -> None:
        nonlocal saved
        saved += 1
        original(path)

    conversation.save = save  # type: ignore[method-assign]
    continue_reading(conversation, tmp_path / "often", every=SaveEvery(tokens=1))
    assert saved > 5
    assert same_content(tmp_path / "rarely", tmp_path / "often")
    continue_reading(begun(artifact), tmp_path / "timed", every=SaveEvery(seconds=0.0))
    assert same_content(tmp_path / "rarely", tmp_path / "timed")


def test_another_document_in_the_same_file_is_refused(artifact: Path, tmp_path: Path) -> None:
    path = tmp_path / "april.session"
    continue_reading(begun(artifact), path)
    assert document_in(path, TEXT.encode()).title == "April"
    with pytest.raises(EdgeInfiniteError, match=r"holds another document, april\.txt"):
        document_in(path, b"May")
    bare = open_greedy(artifact)
    list(bare.ask("Hi", max_new_tokens=1))
    bare.save(path)
    with pytest.raises(EdgeInfiniteError, match="a session without a document"):
        document_in(path, TEXT.encode())


def test_a_raw_reading_is_the_text_as_it_stands(artifact: Path, tmp_path: Path) -> None:
    conversation = begun(artifact, raw=True)
    tokens = list(conversation.session.unread)
    assert tokens == conversation.tokenizer.encode_text(TEXT)
    continue_reading(conversation, tmp_path / "raw")
    resumed = open_greedy(artifact, session=tmp_path / "raw")
    assert not resumed.message_is_open
    assert resumed.document is not None and resumed.document.raw


def test_sessions_are_listed_by_their_headers(artifact: Path, tmp_path: Path) -> None:
    continue_reading(begun(artifact), tmp_path / "april.session")
    half = begun(artifact)
    with pytest.raises(Cancelled):
        continue_reading(
            half, tmp_path / "half.safetensors", cancelled=lambda: half.session.tokens_read > 99
        )
    shutil.copy(tmp_path / "april.session", tmp_path / "broken.session")
    with (tmp_path / "broken.session").open("r+b") as file:
        file.truncate(500)
    (tmp_path / "notes.txt").write_text("no session")
    (tmp_path / "folder.session").mkdir()

    whole, broken, partial = sessions_in(tmp_path)

    assert (whole.path.name, whole.document, whole.title) == ("april.session", "april.txt", "April")
    assert whole.model and whole.error is None and whole.tokens_left == 0
    assert whole.bytes == (tmp_path / "april.session").stat().st_size
    assert broken.path.name == "broken.session" and "not a whole session file" in str(broken.error)
    assert partial.tokens_left == len(half.session.unread) > 0
    assert partial.tokens_read + partial.tokens_left == whole.tokens_read
