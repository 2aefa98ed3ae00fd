"""`serve --engine mom`: the checkpoint's own answers, and caches that are cut back, not copied."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from tiny_artifact import tiny_checkpoint
from tiny_server import Running, serving_this

from edgeinfinite.export.exact import load_exact, open_exact
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.engines.mom_session import MomEngine, MomSession
from edgeinfinite.runtime_py.server.exact_states import ExactStates
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.served import Served
from tiny import tiny_hybrid

TEXT = "The otter swam down the river and met a heron. " * 4


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("exact") / "tiny")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "caches"
    folder.mkdir()
    return folder


@pytest.fixture
def server(checkpoint: Path, folder: Path) -> Iterator[Running]:
    options = ServeOptions(port=0, parallel=2)

    def served() -> Served:
        exact = load_exact(str(checkpoint), chunk=64, folder=folder, threads=1)
        states = ExactStates(exact.engine, options.parallel)
        return Served("tiny", "f", exact.tokenizer, states, SamplingOptions(), {"chat": True})

    with serving_this(served, options) as running:
        yield running


def ask(server: Running, *messages: str):
    """A conversation: the user's messages and the answers between them, resent as a whole."""
    turns = [
        {"role": "assistant" if i % 2 else "user", "content": text}
        for i, text in enumerate(messages)
    ]
    return server.client().chat.completions.create(
        model="tiny", messages=turns, temperature=0, max_tokens=8
    )


def cached(answer) -> int:
    return answer.usage.prompt_tokens_details.cached_tokens


def alone(checkpoint: Path, *messages: str) -> list[str]:
    conversation = open_exact(str(checkpoint), chunk=64, threads=1)
    return ["".join(conversation.ask(message, max_new_tokens=8)) for message in messages]


def test_an_answer_is_that_of_a_conversation_alone(server: Running, checkpoint: Path) -> None:
    answer = ask(server, TEXT)
    assert answer.choices[0].message.content == alone(checkpoint, TEXT)[0]
    assert cached(answer) == 0 and answer.usage.completion_tokens <= 8


def test_another_question_cuts_the_cache_back_to_where_the_texts_part(
    server: Running, checkpoint: Path
) -> None:
    first, other = f"{TEXT}Who swam?", f"{TEXT}Whom did it meet?"
    expected = {message: alone(checkpoint, message)[0] for message in (first, other)}
    assert ask(server, first).choices[0].message.content == expected[first]
    for message in (other, first, first):
        again = ask(server, message)
        assert again.choices[0].message.content == expected[message]
        assert len(TEXT) < cached(again) < again.usage.prompt_tokens
    assert "edgeinfinite_state_files 1.0" in server.service.metrics.text().decode()


def test_a_conversation_leaves_anothers_cache_alone_though_both_begin_alike(
    server: Running,
) -> None:
    question, other = f"The same beginning. {TEXT}", f"The same beginning. {TEXT[::-1]}"
    ask(server, question)
    assert cached(ask(server, other)) == 0
    for text in (question, other):
        again = ask(server, text)
        assert cached(again) == again.usage.prompt_tokens - 1


def test_requests_at_the_same_time_have_sessions_of_their_own(
    server: Running, checkpoint: Path, folder: Path
) -> None:
    texts = [f"{word} {TEXT}" for word in ("a", "b", "c", "d")]
    answers: dict[str, str] = {}

    def one(text: str) -> None:
        answers[text] = ask(server, text).choices[0].message.content

    threads = [threading.Thread(target=one, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {text: alone(checkpoint, text)[0] for text in texts}
    assert len(server.service.states._waiting) <= 2
    assert not list(folder.iterdir()), "caches have no name"


def test_a_text_beyond_the_trained_positions_is_refused_and_the_server_lives(
    server: Running,
) -> None:
    with pytest.raises(openai.BadRequestError, match="512 positions; exact attention ends there"):
        ask(server, "a" * 600)
    assert not server.service.states._waiting, "it holds nothing"
    assert ask(server, "hello").usage.completion_tokens <= 8


def test_a_stream_is_the_whole_answer(server: Running, checkpoint: Path) -> None:
    turn = [{"role": "user", "content": TEXT}]
    stream = server.client().chat.completions.create(
        model="tiny", messages=turn, temperature=0, max_tokens=8, stream=True
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert text == alone(checkpoint, TEXT)[0]


def test_a_cache_with_windows_only_goes_on_where_it_stopped(tmp_path: Path) -> None:
    engine = MomEngine(tiny_hybrid("Gemma3", 7), chunk=8, folder=tmp_path)
    states, text = ExactStates(engine, 1), list(range(3, 40))
    session = states.continued(text)
    session.append(text)
    states.done(session)
    assert states.continued([*text, 50]) is session
    states.done(session)
    assert states.continued([*text[:20], 50, 51]) is not session
    assert states.figures()["files"] == 1
    states.close()
    assert states.figures()["files"] == 0
    assert isinstance(session, MomSession) and not session.can_cut
