"""What OpenAI's own client, an unmodified one, gets from the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import httpx
import numpy as np
import openai
import pytest
from greedy import open_greedy
from tiny_server import serving

from edgeinfinite.runtime_py.session.session import Session

GREEDY = {"temperature": 0, "max_tokens": 12}
ENDLESS = {"max_tokens": 1_000_000, "stream": True, "logit_bias": {"1": -100}}  # no stop token
ENDLESS["extra_body"] = {"repetition_detection": {}}  # nor another end
LONG = "The otter swam down the river and met a heron. " * 40
"""Longer than the tiny artifact's whole state, which holds 44 tokens of one byte each."""


def user(text: str) -> list:
    return [{"role": "user", "content": text}]


def alone(artifact, *messages: str) -> list[str]:
    conversation = open_greedy(artifact, threads=1)
    return ["".join(conversation.ask(message, max_new_tokens=12)) for message in messages]


def chat(server, messages: list, **options):
    return server.client().chat.completions.create(
        model="tiny", messages=messages, **(GREEDY | options)
    )


def continue_chat(server, first: str, second: str, **options):
    """Two turns, the whole conversation resent, as every client does."""
    answer = chat(server, user(first), **options).choices[0].message
    messages = [*user(first), answer.model_dump(), *user(second)]
    return answer.content, chat(server, messages, **options)


@pytest.mark.parametrize("message", ["What did the dog see?", LONG], ids=["short", "long"])
def test_an_answer_is_that_of_a_conversation_alone(server, artifact, message):
    done = chat(server, user(message))
    assert done.choices[0].message.content == alone(artifact, message)[0]
    assert done.choices[0].finish_reason in ("stop", "length")
    assert done.usage.completion_tokens <= 12
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def test_a_streamed_answer_is_the_whole_one_and_ends_with_its_usage(server):
    whole = chat(server, user(LONG))
    chunks = list(chat(server, user(LONG), stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    plain = list(chat(server, user("Hi"), stream=True))
    assert all(chunk.usage is None for chunk in plain)


def test_a_completion_continues_the_text(server):
    client = server.client()
    whole = client.completions.create(model="tiny", prompt="Once upon", temperature=0)
    assert whole.usage.completion_tokens <= 16
    stream = client.completions.create(
        model="tiny", prompt=["Once upon"], temperature=0, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_the_same_seed_gives_the_same_answer(server):
    sampled = {"temperature": 1.5, "seed": -5}
    first, second = (chat(server, user("Say something."), **sampled) for _ in range(2))
    assert first.choices[0].message.content == second.choices[0].message.content
    other = chat(server, user("Say something."), temperature=1.5, seed=6)
    assert other.choices[0].message.content != first.choices[0].message.content


def test_a_resent_conversation_is_read_from_its_last_turn_on(server):
    _, second = continue_chat(server, LONG, "And then?")
    assert second.usage.prompt_tokens_details.cached_tokens > len(LONG)
    new = second.usage.prompt_tokens - second.usage.prompt_tokens_details.cached_tokens
    assert new < 80


def test_another_question_about_the_same_text_reads_its_end_only(server):
    chat(server, user(LONG + "Who swam?"))
    again = chat(server, user(LONG + "Who was met?"))
    assert again.usage.prompt_tokens_details.cached_tokens >= len(LONG) - 512


def test_reused_text_is_answered_as_by_one_session_that_read_the_same_pieces(server, artifact):
    first, second = continue_chat(server, LONG, "And then?")
    conversation = open_greedy(artifact, threads=1)
    tokenizer, session = conversation.tokenizer, conversation.session
    assert "".join(conversation.ask(LONG, max_new_tokens=12)) == first
    messages = [*user(LONG), {"role": "assistant", "content": first}, *user("And then?")]
    tokens = tokenizer.encode_chat(messages)
    kept = second.usage.prompt_tokens_details.cached_tokens
    if kept != session.tokens_read:  # the answer was read as other tokens than were sampled
        session = conversation.session = Session(session.engine)
        session.append(tokens[:kept])
    answer = "".join(conversation.answer(tokens[kept:], max_new_tokens=12))
    assert answer == second.choices[0].message.content


def test_a_state_that_the_server_saved_is_bit_for_bit_that_of_a_session_alone(server, artifact):
    chat(server, user(LONG))
    conversation = open_greedy(artifact, threads=1)
    list(conversation.ask(LONG, max_new_tokens=12))
    session = conversation.session
    saved = [kept.session for kept in server.service.states._saved.values()]
    (same,) = (kept for kept in saved if kept.tokens_read == session.tokens_read)
    assert same.residual == session.residual and same.compressions == session.compressions
    for spec in session.state.specs:
        np.testing.assert_array_equal(same.state.in_use(spec), session.state.in_use(spec))


def test_a_state_amid_a_text_is_kept_only_where_it_is_that_of_a_shorter_text(paper_artifact):
    """`reencode` looks ahead, so it leaves no state before the prompt's end."""
    with serving(paper_artifact) as server:
        client = server.client()
        for question in ("Who swam?", "Who was met?"):
            done = client.chat.completions.create(
                model="paper", messages=user(LONG + question), **GREEDY
            )
            assert done.usage.prompt_tokens_details.cached_tokens == 0


def test_the_models_are_listed(server):
    (model,) = server.client().models.list()
    assert model.id == "tiny"
    assert server.client().models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-4' here"):
        server.client().models.retrieve("gpt-4")


def test_eight_clients_with_cancels_in_between_get_their_own_answers(serve, artifact):
    """Every text comes several times, alone, continued, and cut off by clients that leave."""
    texts = [f"{name} lives in {place}. " * 12 for name, place in _PAIRS]
    expected = {text: alone(artifact, text)[0] for text in texts}
    wrong: list[str] = []

    with serve(parallel=3, cache_mb=1) as server:

        def client(number: int) -> None:
            random = np.random.default_rng(number)
            for turn in range(8):
                text = texts[int(random.integers(len(texts)))]
                if turn % 3 == 2:
                    stream = chat(server, user(text), max_tokens=5000, stream=True)
                    for _, _ in zip(range(int(random.integers(1, 6))), stream, strict=False):
                        pass
                    stream.close()
                    continue
                answer = chat(server, user(text)).choices[0].message.content
                if answer != expected[text]:
                    wrong.append(f"{text[:30]}: {answer!r}, not {expected[text]!r}")

        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.until(lambda: server.service.jobs.running == 0)
        assert not wrong
        assert server.service.metrics.cancelled._value.get() > 0
        assert server.service.states.figures()["bytes"] <= 1_000_000


_PAIRS = [("Ada", "Bonn"), ("Ben", "Cork"), ("Cleo", "Dijon"), ("Dan", "Essen"), ("Eve", "Fes")]


def test_a_client_that_leaves_frees_its_slot_and_its_reading_is_kept(serve):
    with serve(parallel=1) as server:
        stream = chat(server, user(LONG), **ENDLESS)
        pieces = iter(stream)
        while not next(pieces).choices[0].delta.content:  # the prompt isn't read before the answer
            pass
        assert server.service.jobs.running == 1
        stream.close()
        server.until(lambda: server.service.jobs.running == 0)
        again = chat(server, [*user(LONG), *user("Well?")])
        assert again.usage.prompt_tokens_details.cached_tokens > 0


def test_a_client_that_leaves_while_its_text_is_read_can_come_back_for_the_rest(serve):
    text = (LONG * 300).encode()
    with serve(parallel=1) as server:

        def read() -> Iterator[dict[str, int]]:
            url = f"{server.url}/documents"
            with httpx.stream("POST", url, content=text, timeout=60) as lines:
                yield from map(json.loads, lines.iter_lines())

        first = read()
        assert next(first)["cached_tokens"] == 0
        assert next(first)["read"] > 0
        first.close()
        server.until(lambda: server.service.jobs.running == 0)
        again = next(read())
        assert 0 < again["cached_tokens"] < again["tokens"]


def test_those_that_would_wait_too_long_are_sent_away(serve):
    with serve(parallel=1, waiting=0) as server:
        stream = chat(server, user("Hi"), **ENDLESS)
        next(iter(stream))
        with pytest.raises(openai.InternalServerError, match="ask again later") as refused:
            chat(server, user("Hi"))
        assert refused.value.status_code == 503
        assert int(refused.value.response.headers["retry-after"]) > 0
        stream.close()
        server.until(lambda: server.service.jobs.running == 0)
        chat(server, user("Hi"))


def test_an_answer_ends_before_a_stop_string(server, artifact):
    whole = chat(server, user("Tell me.")).choices[0].message.content
    middle = len(whole) // 2
    stop = whole[middle : middle + 2]
    cut = chat(server, user("Tell me."), stop=[stop, "never in it"])
    assert cut.choices[0].message.content == whole[: whole.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    chunks = chat(server, user("Tell me."), stop=stop, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == cut.choices[0].message.content


def test_penalties_and_biases_change_the_answer(server):
    def first_token(**options) -> str:
        return chat(server, user("Tell me."), max_tokens=1, **options).choices[0].message.content

    letter = "70"
    likeliest = first_token()
    biased = first_token(logit_bias={letter: 100})
    assert biased != likeliest
    assert first_token(logit_bias={letter: 0}) == likeliest
    repeated = chat(server, user("Tell me."), logit_bias={letter: 12}, max_tokens=8)
    varied = chat(
        server, user("Tell me."), logit_bias={letter: 12}, max_tokens=8, frequency_penalty=2
    )
    assert varied.choices[0].message.content != repeated.choices[0].message.content


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_repeats_itself_ends_unless_the_client_says_otherwise(server, streamed):
    def answered(**fields) -> tuple[str, object, int]:
        body = {"messages": user("Tell me."), "max_tokens": 60, "logit_bias": {"70": 100}}
        sent = {"stream": streamed, "stream_options": {"include_usage": True}} if streamed else {}
        reply = httpx.post(f"{server.url}/v1/chat/completions", json=body | sent | fields)
        assert reply.status_code == 200, reply.text
        if not streamed:
            done = reply.json()
        else:
            lines = [line for line in reply.text.splitlines() if line.startswith("data: {")]
            *_, done, usage = (json.loads(line[6:]) for line in lines)
            done |= {"usage": usage["usage"]}
        choice = done["choices"][0]
        used = done["usage"]["completion_tokens"]
        return choice["finish_reason"], choice.get("stop_reason"), used

    assert answered() == ("stop", "repetition_detected", 48)
    assert answered(repetition_detection={}) == ("length", None, 60)
    assert answered(temperature=0) == ("stop", "repetition_detected", 48)
    asked = {"max_pattern_size": 4, "min_pattern_size": 4, "min_count": 2}
    assert answered(repetition_detection=asked) == ("stop", "repetition_detected", 8)


def test_log_probabilities_belong_to_the_answers_tokens(server):
    asked = {"logprobs": True, "top_logprobs": 3}
    done = chat(server, user("Tell me."), **asked)
    listed = done.choices[0].logprobs.content
    assert len(listed) == done.usage.completion_tokens
    assert b"".join(bytes(one.bytes or []) for one in listed)
    for one in listed:  # greedy: the chosen token is the likeliest
        assert len(one.top_logprobs) == 3
        assert one.logprob == one.top_logprobs[0].logprob <= 0
    streamed = chat(server, user("Tell me."), stream=True, **asked)
    parts = [c.choices[0].logprobs.content for c in streamed if c.choices[0].logprobs]
    assert [one.logprob for part in parts for one in part] == [one.logprob for one in listed]
    text = server.client().completions.create(
        model="tiny", prompt="Once", temperature=0, logprobs=2
    )
    assert len(text.choices[0].logprobs.token_logprobs) == text.usage.completion_tokens


def test_an_answer_follows_a_json_schema(server):
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    done = chat(server, user("Is it so?"), response_format=wanted, max_tokens=100)
    assert json.loads(done.choices[0].message.content)["yes"] in (True, False)
    assert done.choices[0].finish_reason == "stop"
    wanted["json_schema"]["schema"] = {"type": "nonsense"}
    with pytest.raises(openai.BadRequestError, match="JSON schema can't be used"):
        chat(server, user("Is it so?"), response_format=wanted)
