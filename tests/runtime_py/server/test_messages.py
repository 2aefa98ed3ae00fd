"""`/v1/messages`, asked by Anthropic's own client."""

from __future__ import annotations

import re

import httpx
import pytest

anthropic = pytest.importorskip("anthropic")

HI = [{"role": "user", "content": "Hi"}]
RAW = {"model": "tiny", "temperature": 0, "max_tokens": 12}
GREEDY = {"model": "tiny", "max_tokens": 12, "extra_body": {"temperature": 0}}


def client_of(server, **options):
    return anthropic.Anthropic(
        base_url=server.url, **{"api_key": "none", "max_retries": 0} | options
    )


def test_a_message_is_the_answer_of_the_chat_route(server):
    said = client_of(server).messages.create(system="Be brief.", messages=HI, **GREEDY)
    chat = server.client().chat.completions.create(
        model="tiny",
        temperature=0,
        max_tokens=12,
        messages=[{"role": "system", "content": "Be brief."}, *HI],
    )
    assert said.content[0].text == chat.choices[0].message.content
    assert said.usage.output_tokens == chat.usage.completion_tokens
    ends = {"length": "max_tokens", "stop": "end_turn"}
    assert said.stop_reason == ends[chat.choices[0].finish_reason]
    assert said.role == "assistant" and said.model == "tiny"
    counted = client_of(server).messages.count_tokens(model="tiny", system="Be brief.", messages=HI)
    assert counted.input_tokens == chat.usage.prompt_tokens


def test_a_stream_grows_into_the_same_message(server):
    whole = client_of(server).messages.create(messages=HI, **GREEDY)
    with client_of(server).messages.stream(messages=HI, **GREEDY) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    raw = httpx.post(
        f"{server.url}/v1/messages", json=RAW | {"messages": HI, "stream": True}, timeout=20
    )
    names = re.findall(r"^event: (\w+)$", raw.text, re.MULTILINE)
    assert names[:2] == ["message_start", "content_block_start"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(names[2:-3]) == {"content_block_delta"} and len(events) > 5
    assert "[DONE]" not in raw.text


def test_a_stop_sequence_is_named(server):
    whole = client_of(server).messages.create(messages=HI, **GREEDY).content[0].text
    stop = whole[4:6]
    said = client_of(server).messages.create(messages=HI, stop_sequences=[stop, "@@@"], **GREEDY)
    assert said.content[0].text == whole[: whole.index(stop)]
    assert (said.stop_reason, said.stop_sequence) == ("stop_sequence", stop)


def test_blocks_are_paragraphs_and_a_growing_history_is_read_once(server):
    client = client_of(server)
    messages = [{"role": "user", "content": [{"type": "text", "text": one} for one in "ab"]}]
    plain = client.messages.create(messages=[{"role": "user", "content": "a\n\nb"}], **GREEDY)
    said = client.messages.create(
        system=[{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}],
        messages=messages,
        **GREEDY,
    )
    assert said.content[0].text == plain.content[0].text
    read = 0
    for turn in range(4):
        messages += [
            {"role": "assistant", "content": [block.to_dict() for block in said.content]},
            {"role": "user", "content": f"Go on, {turn}"},
        ]
        said = client.messages.create(messages=messages, **GREEDY)
        usage = said.usage
        assert usage.cache_read_input_tokens >= read
        assert usage.input_tokens < 60
        read = usage.cache_read_input_tokens + usage.input_tokens
        held = usage.to_dict()
        assert held["exact_tokens"] + held["older_tokens"] == read + usage.output_tokens
    assert held["older_tokens"] > 100 > held["exact_tokens"] and held["recall_slots"] >= 0


def test_an_answers_beginning_is_continued(server):
    begun = [*HI, {"role": "assistant", "content": "The dog saw"}]
    said = client_of(server).messages.create(messages=begun, **GREEDY)
    chat = server.client().chat.completions.create(
        model="tiny", temperature=0, max_tokens=12, messages=begun
    )
    assert said.content[0].text == chat.choices[0].message.content


@pytest.mark.parametrize(
    ("fields", "kind", "says"),
    [
        ({"max_tokens": None}, anthropic.BadRequestError, "max_tokens: Field required"),
        ({"model": "claude"}, anthropic.NotFoundError, "there is no model 'claude' here"),
        ({"seed": 1}, anthropic.BadRequestError, "not supported here: seed"),
        ({"messages": [{"role": "tool", "content": "x"}]}, anthropic.BadRequestError, r"\.role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            anthropic.BadRequestError,
            r"messages\[0\].content\[0\] is of type image",
        ),
        ({"stop_sequences": ["x"] * 20}, anthropic.BadRequestError, "stop_sequences: give at mos"),
        ({"temperature": 1.5}, anthropic.BadRequestError, "temperature"),
    ],
)
def test_refusals_have_the_apis_own_shape(server, fields, kind, says):
    asked = RAW | {"messages": HI} | fields
    with pytest.raises(kind, match=says) as caught:
        client_of(server).post("/v1/messages", body=asked, cast_to=object)
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] in ("invalid_request_error", "not_found_error")


def test_keys_come_in_either_header_and_refusals_in_the_apis_shape(serve):
    with serve(api_key="secret") as server:
        for options in ({"api_key": "secret"}, {"api_key": None, "auth_token": "secret"}):
            assert client_of(server, **options).messages.create(messages=HI, **GREEDY).content
        with pytest.raises(anthropic.AuthenticationError) as caught:
            client_of(server, api_key="wrong").messages.create(messages=HI, **GREEDY)
        assert caught.value.body["error"]["type"] == "authentication_error"
        assert httpx.get(f"{server.url}/v1/models").json()["error"]["code"] == "invalid_api_key"
        wrong = httpx.get(f"{server.url}/v1/models", headers={"x-api-key": "secrets"})
        assert wrong.status_code == 401


def test_an_answer_of_a_schema(server):
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["n"],
        "additionalProperties": False,
    }
    said = client_of(server).messages.create(
        messages=HI,
        output_config={"format": {"type": "json_schema", "schema": schema}},
        **GREEDY,
    )
    assert re.fullmatch(r'\{"n": \d\}', said.content[0].text)


def test_a_client_that_leaves_ends_its_request(server):
    body = RAW | {"messages": HI, "stream": True, "max_tokens": 2_000}
    with httpx.stream("POST", f"{server.url}/v1/messages", json=body, timeout=20) as reply:
        next(reply.iter_lines())
    server.until(lambda: server.service.jobs.running == 0)


def test_what_claude_code_and_others_send_along_changes_nothing(server):
    """Context editing, since nothing is compacted; the effort that the API means by none."""
    plain = httpx.post(f"{server.url}/v1/messages", json=RAW | {"messages": HI}, timeout=20).json()
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}]
    more = {
        "context_management": {"edits": edits},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "metadata": {"user_id": "{}"},
    }
    said = httpx.post(
        f"{server.url}/v1/messages?beta=true", json=RAW | more | {"messages": HI}, timeout=20
    ).json()
    assert said["content"] == plain["content"]
    assert set(said["content"][0]) == {"type", "text"}, "Vercel's client takes no citations of null"
