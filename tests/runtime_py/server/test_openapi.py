"""`/openapi.json` says what the server does."""

from __future__ import annotations

import json
import re
from functools import partial

import httpx
import msgspec
import pytest
from tiny_server import Running

from edgeinfinite.runtime_py.server import answer_schemas as answers
from edgeinfinite.runtime_py.server.anthropic_messages.request import (
    MessageRequest,
    parse_message,
)
from edgeinfinite.runtime_py.server.app import build_app
from edgeinfinite.runtime_py.server.openai_responses.request import (
    ResponseRequest,
    parse_response,
)
from edgeinfinite.runtime_py.server.openapi import description
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import (
    ChatRequest,
    CompletionRequest,
    parse_chat,
    parse_completion,
)

HI = [{"role": "user", "content": "Hi"}]
GREEDY = {"temperature": 0, "max_tokens": 6}
DESCRIBED = description(with_key=False)
SCHEMAS = DESCRIBED["components"]["schemas"]


def test_every_route_stands_in_it_and_nothing_else(server):
    routes = {
        (re.sub(r":path\}", "}", route.path), method.lower())
        for route in build_app(server.service).routes
        for method in route.methods
        if method != "HEAD"
    }
    described = {
        (path, method) for path, methods in DESCRIBED["paths"].items() for method in methods
    }
    assert described == routes


def test_it_is_served_and_every_reference_in_it_leads_somewhere(server):
    said = httpx.get(f"{server.url}/openapi.json")
    assert said.headers["content-type"] == "application/json"
    assert said.json() == json.loads(json.dumps(DESCRIBED))
    for reference in set(re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', said.text)):
        assert reference in SCHEMAS
    assert said.json()["openapi"] == "3.1.0"


def test_it_needs_a_key_where_the_server_has_one_and_says_so(serve):
    with serve(api_key="secret") as server:
        assert httpx.get(f"{server.url}/openapi.json").status_code == 401
        key = {"Authorization": "Bearer secret"}
        paths = httpx.get(f"{server.url}/openapi.json", headers=key).json()["paths"]
    open_paths = {
        path
        for path, methods in paths.items()
        if not any("security" in m for m in methods.values())
    }
    assert open_paths == {"/", "/health", "/page/{name}"}


@pytest.mark.parametrize(
    ("kind", "parse", "least"),
    [
        (ChatRequest, parse_chat, {"messages": HI}),
        (CompletionRequest, parse_completion, {"prompt": "x"}),
        (ResponseRequest, parse_response, {"input": "x"}),
        (MessageRequest, partial(parse_message, counts=True), {"messages": HI}),
    ],
)
def test_what_it_says_of_a_parameter_is_what_becomes_of_it(kind, parse, least):
    schema = SCHEMAS[kind.__name__]
    assert set(kind.__struct_fields__) <= set(schema["properties"])
    assert schema["required"] == ([] if kind is ResponseRequest else list(least))
    for name, said in schema["properties"].items():
        if name not in least:
            parse(json.dumps(least | {name: None}).encode())
        for value in said.get("enum", ()) if name not in kind.__struct_fields__ else ():
            parse(json.dumps(least | {name: value}).encode())
        if "enum" in said:
            with pytest.raises(ApiProblem, match=name):
                parse(json.dumps(least | {name: "another value"}).encode())
    parse(json.dumps(least | {"frobnicate": None}).encode())
    with pytest.raises(ApiProblem, match="frobnicate"):
        parse(json.dumps(least | {"frobnicate": 1}).encode())


def test_a_bias_that_is_neither_object_nor_empty_is_refused():
    for value in (False, 0, "", True, [1]):
        with pytest.raises(ApiProblem, match="logit_bias"):
            parse_completion(json.dumps({"prompt": "x", "logit_bias": value}).encode())
    for value in ([], {}, None):
        parse_completion(json.dumps({"prompt": "x", "logit_bias": value}).encode())


def as_described(said: object, kind: type) -> None:
    """Fails unless the answer has the type's fields, and no others."""
    assert msgspec.to_builtins(msgspec.convert(said, kind)) == said


def test_answers_have_the_shapes_that_it_says(server):
    def ask(path: str, **fields: object) -> httpx.Response:
        return httpx.post(server.url + path, json=GREEDY | fields, timeout=60)

    chat, text = "/v1/chat/completions", "/v1/completions"
    listed = {"logprobs": True, "top_logprobs": 2}
    as_described(ask(chat, messages=HI).json(), answers.ChatCompletion)
    as_described(ask(chat, messages=HI, **listed).json(), answers.ChatCompletion)
    as_described(ask(text, prompt="Hi").json(), answers.Completion)
    as_described(ask(text, prompt="Hi", logprobs=2).json(), answers.Completion)
    as_described(ask(chat, messages=[]).json(), answers.ErrorAnswer)
    streamed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    for path, kind, fields in (
        (chat, answers.ChatCompletionChunk, {"messages": HI} | listed),
        (text, answers.Completion, {"prompt": "Hi", "logprobs": 2}),
    ):
        events = ask(path, **streamed, **fields).text.strip().split("\n\n")
        assert events.pop() == "data: [DONE]"
        for event in events:
            as_described(json.loads(event.removeprefix("data: ")), kind)
    for path, kind in (
        ("/v1/models", answers.ModelList),
        ("/v1/models/tiny", answers.Model),
        ("/health", answers.Health),
        ("/v1/models/other", answers.ErrorAnswer),
        ("/nothing", answers.ErrorAnswer),
    ):
        as_described(httpx.get(server.url + path).json(), kind)
    first, *middle, last = httpx.post(f"{server.url}/documents", content=b"Hi").text.splitlines()
    as_described(json.loads(first), answers.DocumentFound)
    as_described(json.loads(middle[0]), answers.DocumentRead)
    as_described(json.loads(last), answers.DocumentBeginning)


def test_a_method_that_isnt_there_is_refused_with_those_that_are(server):
    said = httpx.put(f"{server.url}/v1/completions", content=b"{}")
    assert said.status_code == 405 and said.headers["allow"] == "POST"


def test_a_method_that_isnt_there_is_told_all_that_are(server: Running) -> None:
    answer = httpx.request("PATCH", f"{server.url}/v1/responses/x")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD"
    for path in ("input_tokens", "x/input_items"):
        assert "DELETE" not in httpx.request("PATCH", f"{server.url}/v1/responses/{path}").headers


def test_the_messages_api_describes_its_own_errors(server: Running) -> None:
    said = httpx.get(f"{server.url}/openapi.json").json()
    shapes = {}
    for path in ("/v1/messages", "/v1/messages/count_tokens", "/v1/responses"):
        responses = said["paths"][path]["post"]["responses"]
        schema = responses["400"]["content"]["application/json"]["schema"]["$ref"]
        shapes[path] = said["components"]["schemas"][schema.rpartition("/")[2]]
        answer = httpx.post(f"{server.url}{path}", content=b"{").json()
        assert set(answer) == set(shapes[path]["required"])
    assert shapes["/v1/messages"] == shapes["/v1/messages/count_tokens"] != shapes["/v1/responses"]
