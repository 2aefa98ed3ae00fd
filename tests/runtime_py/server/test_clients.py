"""What clients in the wild send and expect, against a running server."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import threading

import httpx
import pytest
from greedy import open_greedy

from edgeinfinite.runtime_py.server import streaming
from edgeinfinite.runtime_py.server.streaming import event

HI = [{"role": "user", "content": "Hi"}]
GREEDY = {"temperature": 0, "max_tokens": 12}


def ask(server, path: str = "/v1/chat/completions", **fields: object) -> dict:
    body = GREEDY | ({} if "prompt" in fields else {"messages": HI}) | fields
    response = httpx.post(server.url + path, json=body, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "//chat/completions"),
        ("POST", "/v1//chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "//v1///chat/completions//"),
        ("GET", "/v1/models/"),
        ("GET", "/v1//models/tiny/"),
        ("GET", "//health/"),
    ],
)
def test_slashes_that_clients_add_change_nothing(server, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    path = path if "/v1" in path or "health" in path else "/v1" + path
    connection.request(method, path, json.dumps({"messages": HI} | GREEDY))
    response = connection.getresponse()
    said = json.load(response)
    assert response.status == 200, said
    if path.rstrip("/").endswith("models"):
        assert said["object"] == "list"
    connection.close()


def test_an_assistants_last_message_is_continued_and_not_closed(server, artifact):
    conversation = open_greedy(artifact, threads=1)
    begun = "The dog saw"
    tokens = conversation.tokenizer.encode_chat(HI) + conversation.tokenizer.encode_more(begun)
    expected = "".join(conversation.answer(tokens, max_new_tokens=12))
    messages = [*HI, {"role": "assistant", "content": begun}]
    explicit = {"continue_final_message": True, "add_generation_prompt": False}
    for fields in ({}, explicit):
        said = ask(server, messages=messages, **fields)
        assert said["choices"][0]["message"]["content"] == expected
        assert said["usage"]["prompt_tokens"] == len(tokens)
    anew = ask(server, messages=messages, continue_final_message=False)
    assert anew["usage"]["prompt_tokens"] > len(tokens)


def test_minus_one_as_a_seed_is_another_answer_each_time(server):
    sampled = {"temperature": 2, "seed": -1, "max_tokens": 24}
    said = {ask(server, **sampled)["choices"][0]["message"]["content"] for _ in range(4)}
    assert len(said) > 1


def test_bytes_of_tokens_join_to_the_answer_also_within_characters(server):
    # The tiny model's tokens are bytes: these four make one emoji, in any order of likelihood.
    tokenizer = server.service.answers.tokenizer
    ids = tokenizer.encode_more("😀")
    assert len(ids) == 4
    for number, byte in zip(ids, "😀".encode(), strict=True):
        bias = {"logit_bias": {str(number): 100}, "max_tokens": 3}
        listed = ask(server, logprobs=True, top_logprobs=5, **bias)["choices"][0]["logprobs"]
        assert [one["bytes"] for one in listed["content"]] == [[byte]] * 3
        assert all(len(one["top_logprobs"]) == 5 for one in listed["content"])


def test_special_tokens_have_their_text_among_the_likely_ones(server):
    listed = ask(server, logprobs=True, top_logprobs=20, max_tokens=12)["choices"][0]["logprobs"]
    tokens = {one["token"] for entry in listed["content"] for one in entry["top_logprobs"]}
    assert "" not in tokens


def test_completions_list_as_many_tokens_as_asked_for_and_where_each_begins(server):
    said = ask(server, "/v1/completions", prompt="Once 😀", logprobs=5, max_tokens=40)
    choice = said["choices"][0]
    listed = choice["logprobs"]
    assert all(len(top) == 5 for top in listed["top_logprobs"])
    assert len(listed["text_offset"]) == len(listed["tokens"]) == said["usage"]["completion_tokens"]
    for token, top in zip(listed["tokens"], listed["top_logprobs"], strict=True):
        assert token in top  # greedy
    whole = [  # whole characters, special tokens apart, stand in the text where it says
        (token, choice["text"][at : at + len(token)])
        for token, at in zip(listed["tokens"], listed["text_offset"], strict=True)
        if not token.startswith(("bytes:", "<|"))
    ]
    assert whole and all(token == there for token, there in whole)
    stream = {"stream": True, "prompt": "Once 😀", "logprobs": 5} | GREEDY | {"max_tokens": 40}
    text = httpx.post(f"{server.url}/v1/completions", json=stream, timeout=60).text
    parts = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    offsets = [
        at
        for part in parts
        if part["choices"][0]["logprobs"]
        for at in part["choices"][0]["logprobs"]["text_offset"]
    ]
    assert offsets == listed["text_offset"]


def test_broken_bytes_are_streamed_while_they_are_written(server):
    (token,) = (i for i in range(258) if server.service.answers.tokenizer.token_bytes(i) == b"\x80")
    body = {"messages": HI, "stream": True, "max_tokens": 50, "logit_bias": {str(token): 100}}
    body["repetition_detection"] = {"max_pattern_size": 0}
    text = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).text
    parts = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    said = [part["choices"][0]["delta"].get("content") for part in parts]
    assert said.count("\ufffd") == 50


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\n"])
def test_an_event_is_one_line_however_a_client_splits_lines(sign):
    line = event({"content": f"a{sign}b"})
    assert len(line.decode().strip().splitlines()) == 1
    assert json.loads(line.decode().removeprefix("data: "))["content"] == f"a{sign}b"


def test_a_long_prompt_has_few_lines_without_data(server, monkeypatch):
    body = {"messages": [{"role": "user", "content": "x" * 20_000}], "stream": True} | GREEDY
    monkeypatch.setattr(streaming, "_COMMENT_SECONDS", 0.0)
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body, timeout=60) as reply:
        lines = list(reply.iter_lines())
    longest = count = 0
    for line in lines:
        count = 0 if line.startswith("data:") else count + 1
        longest = max(longest, count)
    assert any(line.startswith(": read ") for line in lines)
    assert longest <= 300


def test_progress_comes_as_data_to_clients_that_ask_for_it(server):
    text = "A long story. " * 100
    for path, first in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}),
        ("/v1/completions", {"prompt": text}),
    ):
        read = {}
        for asked in ("first", "again"):
            body = GREEDY | first | {"stream": True, "return_progress": True}
            said = httpx.post(server.url + path, json=body, timeout=60).text
            assert not [line for line in said.splitlines() if line.startswith(":")]
            parts = [json.loads(x[6:]) for x in said.splitlines() if x.startswith("data: {")]
            read[asked] = [part["prompt_progress"] for part in parts if "prompt_progress" in part]
            assert "".join(_text_of(part) for part in parts)
        for steps in read.values():
            assert all(set(s) == {"total", "cache", "processed", "time_ms"} for s in steps)
            counts = [step["processed"] for step in steps]
            assert counts == sorted(counts) and counts[-1] == steps[0]["total"]
            assert counts[0] == steps[0]["cache"]
            assert [step["time_ms"] for step in steps] == sorted(s["time_ms"] for s in steps)
        assert len(read["first"]) > 5 and read["again"][0]["cache"] > 800
    whole = ask(server, messages=HI, return_progress=True)
    assert "prompt_progress" not in whole


def _text_of(part: dict) -> str:
    choice = part["choices"][0]
    return choice["text"] if "text" in choice else choice["delta"].get("content", "")


def test_no_token_at_most_reads_the_prompt_for_those_that_come_after(server):
    text = "Once upon a time. " * 60
    for path, fields in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}),
        ("/v1/completions", {"prompt": text}),
    ):
        said = ask(server, path, **fields, max_tokens=0)
        assert _text_of({"choices": [said["choices"][0] | {"delta": {}}]}) == ""
        assert said["choices"][0]["finish_reason"] == "length"
        assert said["usage"]["completion_tokens"] == 0
        after = ask(server, path, **fields)["usage"]
        assert after["prompt_tokens"] == said["usage"]["prompt_tokens"]
        assert after["prompt_tokens_details"]["cached_tokens"] > 500
    streamed = {"messages": HI, "stream": True, "max_completion_tokens": 0}
    said = httpx.post(f"{server.url}/v1/chat/completions", json=streamed, timeout=60).text
    assert '"finish_reason":"length"' in said and said.endswith("data: [DONE]\n\n")


def test_comments_come_after_15_seconds_and_rarer_the_longer_it_takes():
    said, comments = 0.0, []
    while said < 12 * 3600:
        said += streaming.most_silent(said)
        comments.append(said)
    assert comments[0] == 15
    assert len(comments) <= 300


@pytest.mark.parametrize("path", ["chat/completions", "completions", "messages", "responses"])
def test_a_stream_that_waits_for_others_says_so_and_is_whole_then(server, monkeypatch, path):
    monkeypatch.setattr(streaming, "_COMMENT_SECONDS", 0.2)
    given = {"completions": {"prompt": "Hi"}, "responses": {"input": "Hi"}}.get(
        path, {"messages": HI}
    )
    most = "max_output_tokens" if path == "responses" else "max_tokens"
    ended = threading.Event()
    jobs = [
        asyncio.run(_started(server, ended.wait)) for _ in range(server.service.options.parallel)
    ]
    try:
        with httpx.stream(
            "POST", f"{server.url}/v1/{path}", json=given | {most: 2, "stream": True}, timeout=30
        ) as answer:
            lines = answer.iter_lines()
            assert [next(lines) for _ in range(2)] == [": waiting for other requests"] * 2
            ended.set()
            rest = [line for line in lines if line and not line.startswith(":")]
        last = rest[-1]
        ends = ("data: [DONE]", "message_stop", "response.incomplete", "response.completed")
        assert any(end in last for end in ends)
        quick = httpx.post(f"{server.url}/v1/{path}", json=given | {most: 2}, timeout=30)
        assert quick.status_code == 200
    finally:
        ended.set()
        del jobs


def test_a_mark_before_json_changes_nothing_and_a_compressed_body_is_refused_as_that(server):
    body = json.dumps(GREEDY | {"messages": HI}).encode()
    url = f"{server.url}/v1/chat/completions"
    assert httpx.post(url, content=b"\xef\xbb\xbf" + body, timeout=20).status_code == 200
    zipped = {"Content-Encoding": "gzip"}
    said = httpx.post(url, content=gzip.compress(body), headers=zipped, timeout=20)
    assert said.status_code == 415 and "encoded as gzip" in said.text


def test_a_schema_that_no_text_fits_is_refused_as_that(server):
    pytest.importorskip("llguidance")
    wanted = {"name": "x", "schema": {"$ref": "#"}}
    body = {"messages": HI, "response_format": {"type": "json_schema", "json_schema": wanted}}
    said = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=20)
    assert said.status_code == 400 and "no text has this form" in said.text


async def _started(server, work) -> object:
    return server.service.jobs.start(lambda job: work())


def test_a_schema_that_explodes_stops_nobody_and_ends_when_its_client_leaves(server):
    pytest.importorskip("llguidance")
    parts = [{"type": "string", "pattern": f".*a.{{{i}}}b.*"} for i in range(1, 31)]
    wanted = {"name": "x", "schema": {"type": "object", "properties": {"a": {"allOf": parts}}}}
    body = {"messages": HI, "response_format": {"type": "json_schema", "json_schema": wanted}}
    for _ in range(4):
        with pytest.raises(httpx.TimeoutException):
            httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=2)
        assert httpx.get(f"{server.url}/health", timeout=1).status_code == 200
    server.until(lambda: server.service.jobs.running == 0, seconds=5)
    assert ask(server)["choices"]


def test_a_schemas_fault_is_named_with_its_place(server):
    pytest.importorskip("llguidance")
    schema = {"type": "object", "properties": {"price": {"type": "string", "pattern": "(?=a)b"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}
    body = {"messages": HI, "response_format": wanted}
    said = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
    assert said.status_code == 400
    message = said.json()["error"]["message"]
    assert "properties.price.pattern '(?=a)b'" in message and "look-around" in message
    schema["properties"]["price"]["pattern"] = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
    schema |= {"required": ["price"], "additionalProperties": False}
    answered = ask(server, response_format=wanted, max_tokens=200, temperature=2, seed=1)
    text = answered["choices"][0]["message"]["content"]
    if answered["choices"][0]["finish_reason"] == "stop":
        assert any(sign.isdigit() for sign in json.loads(text)["price"])
