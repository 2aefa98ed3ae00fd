"""The shortest way from an artifact to an answer, in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_artifact import tiny_artifact

import edgeinfinite
from edgeinfinite.runtime_py.conversation import Conversation


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("conversation") / "artifact")


def test_a_message_is_answered_piece_by_piece_and_counted(artifact):
    conversation = Conversation.open(artifact)
    pieces = list(conversation.ask("What did the dog see?", max_new_tokens=12))
    figures = conversation.statistics()
    assert figures is not None
    assert figures.text == "".join(pieces)
    assert 0 < figures.new_tokens <= 12
    assert figures.prompt_tokens == conversation.session.tokens_read - figures.new_tokens


def test_the_first_turn_begins_a_chat_and_later_ones_continue_it(artifact):
    conversation = Conversation.open(artifact)
    tokenizer = conversation.tokenizer
    assert conversation.turn("One.") == tokenizer.encode_chat([{"role": "user", "content": "One."}])
    list(conversation.ask("One.", max_new_tokens=4))
    read = conversation.session.tokens_read
    turn = tokenizer.encode_turn("Two.")
    list(conversation.ask("Two.", max_new_tokens=1))
    figures = conversation.statistics()
    assert figures is not None and figures.prompt_tokens == len(turn)
    assert conversation.session.tokens_read == read + len(turn) + figures.new_tokens


def test_a_reset_conversation_answers_as_a_new_one(artifact):
    conversation = Conversation.open(artifact)
    expected = list(conversation.ask("One.", max_new_tokens=4))
    list(conversation.ask("Two.", max_new_tokens=4))
    conversation.reset()
    assert list(conversation.ask("One.", max_new_tokens=4)) == expected
    assert conversation.session.tokens_read < 64


def test_it_is_part_of_the_public_api():
    assert edgeinfinite.Conversation is Conversation
