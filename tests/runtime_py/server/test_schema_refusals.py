"""A schema that can't be held to is refused by the place of its keyword, on all three APIs."""

from __future__ import annotations

import json

import httpx
import pytest

pytest.importorskip("llguidance")

HI = [{"role": "user", "content": "Hi"}]


def around(part: dict) -> dict:
    return {
        "type": "object",
        "properties": {"answer": {"type": "array", "items": part}},
        "required": ["answer"],
        "additionalProperties": False,
    }


def asked(where: str, schema: dict) -> tuple[str, dict]:
    """A request that holds its answer, or a strict tool's arguments, to a schema."""
    named = {"name": "f", "strict": True}
    chat = {"messages": HI, "max_tokens": 4}
    given = {
        "response_format": {
            "response_format": {"type": "json_schema", "json_schema": named | {"schema": schema}}
        },
        "chat tool": {
            "tools": [{"type": "function", "function": named | {"parameters": schema}}],
        },
        "text.format": {"text": {"format": {"type": "json_schema", **named, "schema": schema}}},
        "response tool": {"tools": [{"type": "function", **named, "parameters": schema}]},
        "output_config": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "message tool": {"tools": [named | {"input_schema": schema}]},
    }[where]
    if where in ("text.format", "response tool"):
        return "responses", {"input": "Hi", "max_output_tokens": 4} | given
    return "messages" if where in ("output_config", "message tool") else "chat/completions", (
        chat | given
    )


PLACES = (
    *("response_format", "chat tool", "text.format", "response tool", "output_config"),
    "message tool",
)


@pytest.mark.parametrize("where", PLACES)
def test_a_keyword_is_named_by_its_place(server, where):
    for part, says in (
        ({"type": "array", "uniqueItems": True}, "uniqueItems is not supported"),
        ({"type": "string", "pattern": "^(?!a)b"}, "pattern '^(?!a)b' can't be used: look-around"),
        ({"type": "string", "format": "idn-email"}, "format 'idn-email' is not supported"),
    ):
        path, body = asked(where, around(part))
        said = httpx.post(f"{server.url}/v1/{path}", json=body, timeout=30)
        assert said.status_code == 400, said.text
        message = said.json()["error"]["message"]
        assert f"properties.answer.items.{says}" in message and "\n" not in message
        assert ("tool f: " in message) == ("tool" in where)


@pytest.mark.parametrize("where", PLACES)
def test_what_means_the_same_otherwise_or_nothing_is_taken(server, where):
    part = {
        "title": "Price",
        "description": "of a pet",
        "examples": ["1.50"],
        "type": "object",
        "propertyNames": {"type": "string", "pattern": "^[a-z]$"},
        "additionalProperties": {
            "type": "string",
            "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$",
            "format": "price",
        },
        "unevaluatedProperties": True,
    }
    path, body = asked(where, around(part))
    said = httpx.post(f"{server.url}/v1/{path}", json=body, timeout=30)
    assert said.status_code == 200, said.text


@pytest.mark.parametrize("where", ["chat tool", "response tool", "message tool"])
def test_a_tool_that_is_not_strict_is_held_to_everything_else(server, where):
    schema = around({"type": "string", "pattern": "^(?!a)[xy]$", "maxLength": 1})
    schema["properties"]["answer"] |= {"minItems": 2, "maxItems": 2, "uniqueItems": True}
    path, body = asked(where, schema)
    for tool in body["tools"]:
        tool.get("function", tool)["strict"] = False
    choice = {"type": "any"} if path == "messages" else "required"
    body |= {"tool_choice": choice, "temperature": 1}
    body["max_output_tokens" if path == "responses" else "max_tokens"] = 200
    if path == "messages":
        body["tool_choice"] |= {"disable_parallel_tool_use": True}
    else:
        body["parallel_tool_calls"] = False
    said = httpx.post(f"{server.url}/v1/{path}", json=body, timeout=60).json()
    if path == "messages":
        arguments = said["content"][0]["input"]
    else:
        chat = path == "chat/completions"
        call = said["choices"][0]["message"]["tool_calls"][0] if chat else said["output"][0]
        arguments = json.loads((call["function"] if chat else call)["arguments"])
    assert len(arguments["answer"]) == 2 and all(len(one) < 2 for one in arguments["answer"])
