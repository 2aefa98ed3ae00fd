"""Tools on all three APIs, asked by their own clients; calls of a model of random weights."""

from __future__ import annotations

import json
import re

import httpx
import openai
import pytest

pytest.importorskip("llguidance")

HI = [{"role": "user", "content": "Hi"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["dog", "cat"]},
        "legs": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["kind", "legs"],
    "additionalProperties": False,
}
PET = {"name": "pet", "description": "Makes a pet.", "parameters": SCHEMA}
CHAT = {"tools": [{"type": "function", "function": PET}], "model": "tiny"}
FLAT = {"tools": [{"type": "function", "strict": True, **PET}], "model": "tiny"}
BLOCKS = {
    "tools": [{"name": "pet", "description": "Makes a pet.", "input_schema": SCHEMA}],
    "model": "tiny",
}
HOT = {"temperature": 2}
ONE = {"parallel_tool_calls": False}


def is_pet(arguments: object) -> bool:
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return (
        isinstance(arguments, dict)
        and set(arguments) == {"kind", "legs"}
        and arguments["kind"] in ("dog", "cat")
        and 0 <= arguments["legs"] <= 9
    )


def test_chat_calls_and_goes_on_with_the_result(server):
    create = server.client().chat.completions.create
    for choice in ("required", {"type": "function", "function": {"name": "pet"}}):
        said = create(messages=HI, tool_choice=choice, max_tokens=200, **CHAT, **HOT, **ONE)
        (choice,) = said.choices
        assert choice.finish_reason == "tool_calls" and choice.message.content is None
        (call,) = choice.message.tool_calls
        assert call.function.name == "pet" and is_pet(call.function.arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    then = create(
        messages=[*HI, choice.message.to_dict(), result], max_tokens=8, temperature=0, **CHAT
    )
    assert then.usage.prompt_tokens > said.usage.total_tokens
    assert then.usage.prompt_tokens_details.cached_tokens >= said.usage.prompt_tokens


def test_a_chat_stream_gives_argument_pieces(server):
    client = server.client()
    with client.chat.completions.stream(
        messages=HI, tool_choice="required", max_tokens=200, **CHAT, **ONE
    ) as stream:
        pieces = [e for e in stream if e.type == "tool_calls.function.arguments.delta"]
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls
    assert is_pet(call.function.arguments) and len(pieces) > 5
    assert "".join(piece.arguments_delta for piece in pieces) == call.function.arguments


def test_responses_call_and_go_on_by_id(server):
    create = server.client().responses.create
    said = create(input="Hi", tool_choice="required", **FLAT, **HOT, **ONE)
    (call,) = said.output
    assert said.status == "completed"
    assert call.type == "function_call" and call.name == "pet" and is_pet(call.arguments)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    by_id = create(
        input=[output],
        previous_response_id=said.id,
        max_output_tokens=16,
        temperature=0,
        tool_choice="none",
        **FLAT,
    )
    assert by_id.usage.input_tokens_details.cached_tokens >= said.usage.total_tokens - 1
    resent = create(
        input=[{"role": "user", "content": "Hi"}, call.to_dict(), output],
        max_output_tokens=16,
        temperature=0,
        tool_choice="none",
        **FLAT,
    )
    assert resent.output_text == by_id.output_text
    assert resent.usage.input_tokens == by_id.usage.input_tokens
    with pytest.raises(openai.BadRequestError, match="the result of no call before it"):
        create(input=[output], **FLAT)


def test_a_response_stream_gives_argument_pieces(server):
    with server.client().responses.stream(
        input="Hi", tool_choice={"type": "function", "name": "pet"}, **FLAT, **ONE
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[2] == "response.output_item.added"
    assert kinds[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert kinds.count("response.function_call_arguments.delta") > 5
    assert is_pet(final.output[0].arguments)


def test_messages_call_and_go_on_with_the_result(server):
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
    for choice in ({"type": "any"}, {"type": "tool", "name": "pet"}):
        asked = {
            "messages": HI,
            "max_tokens": 200,
            "tool_choice": choice | {"disable_parallel_tool_use": True},
            **BLOCKS,
        }
        said = client.messages.create(**asked)
        (block,) = said.content
        assert said.stop_reason == "tool_use"
        assert block.type == "tool_use" and block.name == "pet" and is_pet(block.input)
        with client.messages.stream(**asked) as stream:
            pieces = [event for event in stream if event.type == "input_json"]
            final = stream.get_final_message()
        assert is_pet(final.content[0].input) and len(pieces) > 5
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "gone", "is_error": True}
    then = client.messages.create(
        messages=[
            *HI,
            {"role": "assistant", "content": [block.to_dict()]},
            {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]},
        ],
        max_tokens=8,
        **BLOCKS,
    )
    assert then.usage.cache_read_input_tokens > 0
    with pytest.raises(anthropic.BadRequestError, match="the result of no call before it"):
        client.messages.create(
            messages=[{"role": "user", "content": [result]}], max_tokens=8, **BLOCKS
        )


def test_nothing_is_called_where_nothing_may_be(server):
    said = server.client().chat.completions.create(
        messages=HI, tool_choice="none", max_tokens=40, **CHAT, **HOT
    )
    assert said.choices[0].message.tool_calls is None
    without = server.client().chat.completions.create(messages=HI, model="tiny", max_tokens=4)
    assert said.usage.prompt_tokens > without.usage.prompt_tokens + 100  # it is told of them


def test_a_client_that_leaves_amid_a_call_stops_nobody(server):
    long = SCHEMA | {
        "properties": SCHEMA["properties"] | {"kind": {"type": "string", "minLength": 3_000}}
    }
    tool = {"type": "function", "name": "pet", "parameters": long}
    body = {"input": "Hi", "stream": True, "tools": [tool], "tool_choice": "required"}
    with httpx.stream("POST", f"{server.url}/v1/responses", json=body, timeout=30) as reply:
        for line in reply.iter_lines():
            if line == "event: response.function_call_arguments.delta":
                break
    server.until(lambda: server.service.jobs.running == 0)
    assert server.service.responses.figures()["responses"] == 0
    again = server.client().responses.create(input="Hi", tool_choice="required", **FLAT, **ONE)
    assert is_pet(again.output[0].arguments)


def test_a_schema_of_a_megabyte_is_held_to_or_refused_and_stops_nobody(server):
    properties = {f"field_{i}": {"type": "string", "description": "x" * 80} for i in range(8_000)}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    body = {
        "input": "Hi",
        "max_output_tokens": 1,
        "tools": [{"type": "function", "name": "big", "parameters": schema, "strict": True}],
    }
    assert len(json.dumps(body)) > 1_000_000
    said = httpx.post(f"{server.url}/v1/responses/input_tokens", json=body, timeout=60)
    assert said.status_code == 200 and said.json()["input_tokens"] > 1_000_000
    form = {"type": "json_schema", "name": "big", "schema": schema}
    small = {"input": "Hi", "max_output_tokens": 4, "text": {"format": form}}
    said = httpx.post(f"{server.url}/v1/responses", json=small, timeout=60)
    assert said.status_code == 400
    message = said.json()["error"]["message"]
    assert re.search("too much time or memory|grammar can't be followed", message)
    assert len(message) < 400
    few = {**schema, "required": [*properties], "properties": properties}
    form |= {"schema": few}
    said = httpx.post(f"{server.url}/v1/responses", json=small, timeout=60)
    if said.status_code == 200:
        assert said.json()["output"][0]["content"][0]["text"].startswith('{"f')
    else:
        assert "too much time or memory" in said.json()["error"]["message"]
    assert server.client().responses.create(input="Hi", model="tiny", max_output_tokens=4).output


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        ("responses", {"tools": [{"type": "web_search"}]}, r"tools\[0\] is of type web_search"),
        ("responses", {"tools": [{"type": "function", "name": "a b"}]}, r"tools\[0\]\.name is"),
        ("responses", {"tool_choice": "required"}, "tools are missing"),
        ("responses", {"tool_choice": {"type": "function", "name": "x"}}, "no tool 'x'"),
        ("responses", {"tool_choice": {"type": "file_search"}}, "tool_choice: give auto"),
        ("chat/completions", {"tools": [CHAT["tools"][0]] * 2}, "pet is declared twice"),
        ("chat/completions", {"tools": [{"type": "custom"}]}, r"tools\[0\]"),
        ("chat/completions", {"tool_choice": "sometimes"}, "tool_choice"),
        ("chat/completions", {"reasoning_effort": "high"}, "reasoning effort 'high'"),
        ("chat/completions", {"chat_template_kwargs": {"x_y": 1}}, "no switch 'x_y'"),
        ("chat/completions", {"chat_template_kwargs": {"messages": []}}, "no switch 'messages'"),
        ("messages", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "of type bash_2025"),
        ("messages", {"tool_choice": {"type": "tool"}}, "type tool needs a name"),
        ("messages", {"tools": [{"name": "a", "input_schema": {"type": "array"}}]}, "no schema of"),
        ("messages", {"output_config": {"effort": "low"}}, "reasoning effort 'low'"),
        (
            "responses",
            {"tools": [{"type": "namespace", "name": "n"}]},
            r"tools\[0\] is no namespace",
        ),
        (
            "responses",
            {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}]},
            r"tools\[0\]\.tools\[0\] is of type web_search",
        ),
    ],
)
def test_what_isnt_understood_is_refused_by_name(server, path, fields, says):
    asked = {"input": "Hi"} if path == "responses" else {"messages": HI, "max_tokens": 4}
    said = httpx.post(f"{server.url}/v1/{path}", json=asked | fields, timeout=30)
    assert said.status_code == 400
    assert re.search(says, said.json()["error"]["message"]), said.text


def test_results_and_calls_that_dont_fit_are_refused(server):
    call = {"id": "c1", "type": "function", "function": {"name": "pet", "arguments": "[1]"}}
    for messages, says in (
        ([*HI, {"role": "tool", "tool_call_id": "c9", "content": "x"}], "result of no call"),
        ([*HI, {"role": "assistant", "tool_calls": [call]}], "the arguments are no object"),
        ([*HI, {"role": "assistant", "tool_calls": [{"id": 3}]}], "tool_calls"),
    ):
        body = {"messages": messages, "max_tokens": 4}
        said = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=30)
        assert said.status_code == 400
        assert says in said.json()["error"]["message"]


def test_a_tool_chosen_by_name_is_called_once(server):
    """As OpenAI does, whatever `parallel_tool_calls` says: a small model might go on for ever."""
    choice = {"type": "function", "function": {"name": "pet"}}
    said = server.client().chat.completions.create(
        messages=HI, tool_choice=choice, max_tokens=2_000, **CHAT, **HOT
    )
    assert said.choices[0].finish_reason == "tool_calls"
    assert len(said.choices[0].message.tool_calls) == 1


def test_a_call_that_the_limit_cut_isnt_one_to_run(server):
    """Its argument is a letter over and over; what follows a schema isn't ended for that."""
    name = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    said = server.client().chat.completions.create(
        messages=HI,
        model="tiny",
        tools=[{"type": "function", "function": {"name": "greet", "parameters": name}}],
        tool_choice="required",
        logit_bias={"70": 100},  # a letter
        max_tokens=80,
    )
    (choice,) = said.choices
    assert choice.finish_reason == "length" and said.usage.completion_tokens == 80
    assert choice.message.tool_calls[0].function.name == "greet"
    with pytest.raises(json.JSONDecodeError):
        json.loads(choice.message.tool_calls[0].function.arguments)


def test_functions_of_a_namespace_are_called_by_both_names(server):
    """As Codex groups those of its agents and of MCP servers."""
    create = server.client().responses.create
    space = {"type": "namespace", "name": "zoo", "description": "", "tools": FLAT["tools"]}
    asked = {"model": "tiny", "tools": [space], **ONE}
    said = create(input="Hi", tool_choice="required", max_output_tokens=200, **asked, **HOT)
    (call,) = said.output
    assert (call.type, call.namespace, call.name) == ("function_call", "zoo", "pet")
    assert is_pet(call.arguments)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    by_id = create(input=[result], previous_response_id=said.id, max_output_tokens=8, **asked)
    resent = create(
        input=[{"role": "user", "content": "Hi"}, call.to_dict(), result],
        max_output_tokens=8,
        **asked,
    )
    assert by_id.usage.input_tokens == resent.usage.input_tokens
    name = {"type": "function", "name": "zoo.pet"}
    (call,) = create(input="Hi", tool_choice=name, max_output_tokens=200, **asked).output
    assert (call.namespace, call.name) == ("zoo", "pet")
