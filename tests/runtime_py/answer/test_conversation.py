"""The shortest way from an artifact to an answer, in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from greedy import open_greedy
from tiny_artifact import tiny_artifact

import edgeinfinite
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.logprobs import token_logprobs
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.session.session import Session


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("conversation") / "artifact")


def test_a_message_is_answered_piece_by_piece_and_counted(artifact):
    conversation = open_greedy(artifact)
    pieces = list(conversation.ask("What did the dog see?", max_new_tokens=12))
    figures = conversation.statistics()
    assert figures is not None
    assert figures.text == "".join(pieces)
    assert 0 < figures.new_tokens <= 12
    assert figures.prompt_tokens == conversation.session.tokens_read - figures.new_tokens


def test_the_first_turn_begins_a_chat_and_later_ones_continue_it(artifact):
    conversation = open_greedy(artifact)
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
    conversation = open_greedy(artifact)
    expected = list(conversation.ask("One.", max_new_tokens=4))
    list(conversation.ask("Two.", max_new_tokens=4))
    conversation.reset()
    assert list(conversation.ask("One.", max_new_tokens=4)) == expected
    assert conversation.session.tokens_read < 64


def test_a_system_prompt_stands_before_the_first_message_and_stays_for_a_new_start(artifact):
    conversation = Conversation.open(artifact, system="Be brief.")
    told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One."}]
    first = conversation.tokenizer.encode_chat(told)
    assert conversation.turn("One.") == first
    list(conversation.ask("One.", max_new_tokens=2))
    assert conversation.turn("Two.") == conversation.tokenizer.encode_turn("Two.")
    conversation.set_system("Be brief.")
    with pytest.raises(EdgeInfiniteError, match=r"began with another system prompt.*leave this"):
        conversation.set_system("Be long.")
    conversation.reset()
    assert conversation.turn("One.") == first
    conversation.set_system("")
    assert conversation.turn("One.")[:1] == first[:1] != []
    assert conversation.turn("One.") != first


def test_a_system_prompt_is_kept_in_the_session_file(artifact, tmp_path):
    conversation = Conversation.open(artifact, system="Be brief.")
    conversation.attach("A document.")
    conversation.save(tmp_path / "a.session")
    again = Conversation.open(artifact, session=tmp_path / "a.session", system="Be brief.")
    assert again.system == "Be brief."
    again.reset()
    assert again.turn("One.") == conversation.tokenizer.encode_message("One.", system="Be brief.")
    with pytest.raises(EdgeInfiniteError, match="began with another system prompt"):
        Conversation.open(artifact, session=tmp_path / "a.session", system="Be long.")

    own = Conversation.open(artifact)
    own.attach("A document.")
    own.save(tmp_path / "own.session")
    with pytest.raises(EdgeInfiniteError, match="began with the template's own system prompt"):
        Conversation.open(artifact, session=tmp_path / "own.session", system="Be brief.")


LETTERS = SamplingOptions(temperature=1.0, seed=0)


def letters(conversation, stop=(), *, of="ab", **more):
    """Thirty letters, sampled; or fewer, where a stop string is among them."""
    grammar = conversation.guidance.regex(f"[{of}]{{30}}")
    sampler = Sampler(LETTERS)
    return list(conversation.ask("?", sampler=sampler, stop=stop, grammar=grammar, **more))


@pytest.mark.parametrize("of", ["ab", "äö"])  # letters of one and of two tokens
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("start", [0, 4, 11])
def test_an_answer_ends_before_a_stop_string_and_so_does_what_was_read(artifact, start, length, of):
    free = "".join(letters(open_greedy(artifact), of=of))
    stop = free[start : start + length]
    expected = free[: free.index(stop)]

    conversation = open_greedy(artifact)
    pieces = letters(conversation, ["not there", stop], of=of, logprobs=0)

    figures = conversation.statistics()
    assert "".join(pieces) == figures.text == conversation.tokenizer.decode(figures.token_ids)
    assert figures.text == expected
    assert len(figures.logprobs) == figures.new_tokens == len(expected.encode())
    alone = Session(conversation.session.engine)
    alone.append(conversation.tokenizer.encode_chat([{"role": "user", "content": "?"}]))
    for token in figures.token_ids:
        alone.append([token])
    for array, other in zip(
        conversation.session.state.arrays.values(), alone.state.arrays.values(), strict=True
    ):
        np.testing.assert_allclose(array, other, atol=1e-5)
    assert conversation.session.residual == alone.residual
    assert conversation.session.tokens_read == alone.tokens_read
    turn = conversation.tokenizer.encode_turn("And?")
    np.testing.assert_allclose(conversation.session.append(turn), alone.append(turn), atol=1e-4)


def test_stop_strings_that_do_not_come_change_nothing(artifact):
    free, held = open_greedy(artifact), open_greedy(artifact)
    text = "".join(letters(free))
    assert "".join(letters(held, [text[-3:] + "!", "aaab!", "baab!"])) == text
    assert held.statistics().token_ids == free.statistics().token_ids
    turn = free.tokenizer.encode_turn("And?")
    np.testing.assert_array_equal(held.session.append(turn), free.session.append(turn))


def test_logprobs_are_those_of_the_model_whatever_is_sampled(artifact):
    conversation = open_greedy(artifact)
    letters(conversation, logprobs=4)
    figures = conversation.statistics()
    assert [one.token for one in figures.logprobs] == figures.token_ids
    session = Session(conversation.session.engine)
    logits = session.append(conversation.tokenizer.encode_chat([{"role": "user", "content": "?"}]))
    for one in figures.logprobs:
        assert one == token_logprobs(logits, one.token, 4)
        logits = session.append([one.token])
    row = json.loads(json.dumps(figures.to_row()))
    assert row["logprobs"][0]["top"][0] == list(figures.logprobs[0].top[0])


@pytest.mark.parametrize("kind", [str, Path])
def test_files_are_named_by_text_or_by_path(artifact, kind, tmp_path):
    conversation = open_greedy(kind(artifact))
    conversation.attach("The dog saw a bird.")
    conversation.save(kind(tmp_path / "dog.session"))
    resumed = open_greedy(artifact)
    resumed.resume(kind(tmp_path / "dog.session"))
    assert resumed.session.tokens_read == conversation.session.tokens_read > 0
    assert resumed.message_is_open


@pytest.mark.parametrize(
    ("given", "said"),
    [(5, "is of type int; give text"), (None, "NoneType"), ("", "is empty"), (" \n", "is empty")],
)
def test_what_is_no_text_is_refused_before_anything_is_read(artifact, given, said):
    conversation = open_greedy(artifact)
    for method in (conversation.ask, conversation.attach):
        with pytest.raises(EdgeInfiniteError, match=said):
            method(given)
    assert conversation.session.tokens_read == 0 and not conversation.message_is_open


def test_it_is_part_of_the_public_api_and_nothing_else_is_shown():
    assert edgeinfinite.Conversation is Conversation
    assert dir(edgeinfinite) == sorted(edgeinfinite.__all__)
