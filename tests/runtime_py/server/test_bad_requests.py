"""Whatever a client sends, it gets one line, and the server lives."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import urllib.error
import urllib.request

import pytest

from edgeinfinite.runtime_py.answer.repetition import RepetitionDetection
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server import bodies, patience
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import parse_chat, parse_completion

HI = [{"role": "user", "content": "Hi"}]


def refused(request: object, parse=parse_chat) -> ApiProblem:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    with pytest.raises(ApiProblem) as raised:
        parse(body)
    problem = raised.value
    assert problem.status == 400
    assert problem.message and "\n" not in problem.message and len(problem.message) < 400
    assert set(problem.body()["error"]) == {"message", "type", "param", "code"}
    return problem


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "isn't JSON"),
        (b"{", "isn't JSON"),
        (b"\xff\xfe", "isn't JSON"),
        (b"[" * 100_000, "isn't JSON"),
        (b"[]", "a JSON array"),
        (b"null", "a JSON null"),
        (b'"text"', "a JSON string"),
        (b"{}", "missing required field `messages`"),
        ({"messages": []}, "length >= 1"),
        ({"messages": "Hi"}, "Expected `array`"),
        ({"messages": [1]}, "Expected `object`"),
        ({"messages": [{"role": "user"}]}, "missing required field `content`"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0] is the result of no call"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {"messages": [*HI, {"role": "assistant", "tool_calls": [{}]}]},
            "[1].tool_calls[0]: object miss",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "`text`"),
        ({"messages": [{"role": "user", "content": None}]}, "`content`"),
        ({"messages": HI, "max_tokens": "many"}, "max_tokens: Expected `int | null`"),
        ({"messages": HI, "temperature": -1}, "temperature"),
        ({"messages": HI, "temperature": 3}, "temperature"),
        ({"messages": HI, "top_p": -0.1}, "top_p"),
        ({"messages": HI, "top_k": -2}, "top_k"),
        ({"messages": HI, "max_tokens": 1.5}, "max_tokens"),
        ({"messages": HI, "max_tokens": -2}, "max_tokens"),
        ({"messages": HI, "max_tokens": True}, "max_tokens"),
        ({"messages": HI, "stream": "yes"}, "stream: Expected `bool`"),
        ({"messages": HI, "seed": 1.5}, "seed"),
        ({"messages": HI, "presence_penalty": 3}, "presence_penalty"),
        ({"messages": HI, "logit_bias": {"a": 1}}, "logit_bias"),
        ({"messages": HI, "repetition_detection": True}, "repetition_detection"),
        ({"messages": HI, "repetition_detection": {"size": 3}}, "repetition_detection"),
        (
            {"messages": HI, "repetition_detection": {"max_pattern_size": 3, "min_count": 1}},
            "repetition_detection",
        ),
        ({"messages": HI, "logit_bias": {"1": 101}}, "logit_bias"),
        ({"messages": HI, "response_format": {"type": "xml"}}, "response_format.type"),
        ({"messages": HI, "logprobs": True, "top_logprobs": 50}, "top_logprobs"),
        ({"messages": HI, "top_logprobs": 5}, "top_logprobs needs logprobs: true"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(body, says):
    assert says.lower() in refused(body).message.lower()


def test_every_parameter_that_isn_t_there_is_named():
    problem = refused({"messages": HI, "plugins": [{}], "n": 2, "frobnicate": True, "suffix": ""})
    assert "frobnicate, n, plugins" in problem.message
    assert problem.code == "unsupported_parameter"


def test_parameters_that_change_nothing_are_taken():
    neutral = {"n": 1, "tools": [], "logprobs": False, "user": "me", "response_format": None}
    assert parse_chat(json.dumps({"messages": HI} | neutral).encode()).messages


def test_images_are_refused_by_their_name_and_parts_of_text_are_joined():
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    problem = refused({"messages": [{"role": "user", "content": [image]}]})
    assert "image_url" in problem.message and "text only" in problem.message
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    request = parse_chat(json.dumps({"messages": [{"role": "user", "content": parts}]}).encode())
    assert request.plain_messages[0]["content"] == "ab"


def test_stop_strings_are_few():
    with pytest.raises(ApiProblem, match="at most 16 strings"):
        parse_chat(json.dumps({"messages": HI, "stop": ["x"] * 17}).encode()).stops  # noqa: B018


@pytest.mark.parametrize("prompt", [["a", "b"], [1, 2], [[1]], 5, {}])
def test_a_prompt_is_one_text(prompt):
    assert "prompt" in refused({"prompt": prompt}, parse_completion).message


def post(server, body: bytes, path: str = "/v1/chat/completions") -> tuple[int, dict]:
    request = urllib.request.Request(server.url + path, data=body)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def lives(server) -> bool:
    return server.client().chat.completions.create(model="tiny", messages=HI, max_tokens=2).choices[
        0
    ].finish_reason in ("stop", "length")


def test_bad_json_an_empty_prompt_half_a_character_and_unknown_routes_get_one_line(server):
    assert post(server, b"{oops")[0] == 400
    assert post(server, b'{"prompt": ""}', "/v1/completions")[0] == 400
    half = b'{"prompt": "\\ud800"}'
    assert post(server, half, "/v1/completions")[0] == 400
    status, said = post(server, b"{}", "/v1/embeddings")
    assert status == 404 and "/v1/embeddings" in said["error"]["message"]
    status, said = post(server, b"{}", "/v1/models")
    assert status == 405
    assert lives(server)


def test_a_body_of_10_mb_is_refused(server):
    text = json.dumps({"messages": [{"role": "user", "content": "x" * 10_000_000}]}).encode()
    status, said = post(server, text)
    assert status == 413 and "8,388,608 bytes" in said["error"]["message"]
    assert lives(server)


def test_a_body_that_comes_in_drips_is_refused(server, monkeypatch):
    monkeypatch.setattr(patience, "BODY_SECONDS", 0.3)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head + b"{")
        assert b" 408 " in connection.recv(65536).split(b"\r\n")[0]
    assert lives(server)


def test_bodies_that_never_end_take_a_limited_memory_together(server, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_BYTES", 1_000_000)
    head = b"POST /documents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000000\r\n\r\n"
    with contextlib.ExitStack() as opened:
        answers = []
        for _ in range(4):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            opened.enter_context(connection)
            connection.sendall(head + b"x" * 400_000)
            answers.append(connection)
        refused = 0
        for connection in answers:
            connection.settimeout(1)
            with contextlib.suppress(TimeoutError, ConnectionError):
                refused += b" 503 " in connection.recv(65536).split(b"\r\n")[0]
        assert refused >= 1
    server.until(
        lambda: post(server, json.dumps({"messages": HI, "max_tokens": 1}).encode())[0] == 200
    )


def test_a_head_that_comes_in_drips_is_refused(server, monkeypatch):
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.3)
    for begun in (b"", b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(begun)
            assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
    assert lives(server)


def test_a_long_answer_isn_t_cut_by_the_time_for_a_head(server, monkeypatch):
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.2)
    done = server.client().chat.completions.create(
        model="tiny", messages=HI, max_tokens=600, temperature=2, seed=1
    )
    assert done.choices


def test_noise_is_refused(server):
    assert server.raw(b"\x16\x03\x01\x02\x00\x01").startswith(b"HTTP/1.1 400 ")
    endless = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"y" * 200_000
    with contextlib.suppress(ConnectionError):  # closed while more of it was on its way
        assert server.raw(endless).startswith(b"HTTP/1.1 4")
    assert lives(server)


def test_what_a_request_leaves_out_is_the_default_unless_it_asks_for_the_likeliest_tokens():
    ends = RepetitionDetection()
    default = SamplingOptions(0.7, top_p=0.9, repetition_penalty=1.1, repetition_detection=ends)

    def sampling(**fields: object) -> SamplingOptions:
        return parse_chat(json.dumps({"messages": HI} | fields).encode()).sampling(default)

    assert sampling() == default
    assert sampling(top_p=0.5, seed=3) == dataclasses.replace(default, top_p=0.5, seed=3)
    assert sampling(temperature=0) == SamplingOptions(repetition_detection=ends)
    assert sampling(temperature=0, repetition_detection={}) == SamplingOptions()
    for off in ({}, {"max_pattern_size": 0}, {"min_count": 3}):
        assert sampling(repetition_detection=off).repetition_detection.max_pattern_size == 0
    vllm = {"max_pattern_size": 20, "min_pattern_size": 3, "min_count": 4}
    assert sampling(repetition_detection=vllm) == dataclasses.replace(
        default, repetition_detection=RepetitionDetection(20, 3, 4)
    )
    likeliest = sampling(temperature=0, logit_bias={"7": -2}, repetition_detection={})
    assert likeliest == SamplingOptions(logit_bias={7: -2})
