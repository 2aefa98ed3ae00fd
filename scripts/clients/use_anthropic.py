"""Anthropic's own client."""

from __future__ import annotations

from typing import Any

import anthropic
from tasks import MODEL, TOKENS, URL, run

client = anthropic.Anthropic(base_url=URL.removesuffix("/v1"), api_key="none", max_retries=0)
HI: Any = [{"role": "user", "content": "Hi"}]
SCHEMA: Any = {
    "type": "object",
    "properties": {"dog": {"type": "boolean"}},
    "required": ["dog"],
    "additionalProperties": False,
}
TOOL: Any = {"name": "pet", "description": "Makes a pet.", "input_schema": SCHEMA}
PICTURE: Any = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
}


def message(**more: Any) -> Any:
    """A message."""
    return client.messages.create(**({"model": MODEL, "messages": HI, "max_tokens": TOKENS} | more))


def streamed(**more: Any) -> Any:
    """The client's own accumulation of a stream."""
    with client.messages.stream(
        **({"model": MODEL, "messages": HI, "max_tokens": TOKENS} | more)
    ) as stream:
        return [event.type for event in stream][-1], stream.get_final_message()


FORCED: Any = {
    "tools": [TOOL],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "max_tokens": 200,
}


def called() -> Any:
    """A call that the model has to make, and its result."""
    said = message(**FORCED)
    (block,) = said.content
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "Rex"}
    return message(
        tools=[TOOL],
        messages=[
            *HI,
            {"role": "assistant", "content": [block.model_dump()]},
            {"role": "user", "content": [result]},
        ],
    )


run(
    "anthropic",
    {
        "message": message,
        "message, streamed": streamed,
        "system and cache control": lambda: message(
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        ),
        "the answer sent back": lambda: message(
            messages=[
                *HI,
                {"role": "assistant", "content": message().content},
                {"role": "user", "content": "And then?"},
            ]
        ),
        "a call": lambda: message(**FORCED).content,
        "a call, streamed": lambda: streamed(**FORCED),
        "a call and its result": called,
        "stop sequences": lambda: message(stop_sequences=["x"]),
        "tokens counted": lambda: client.messages.count_tokens(model=MODEL, messages=HI),
        "a picture": lambda: message(messages=[{"role": "user", "content": [PICTURE]}]),
        "a server's tool": lambda: message(
            tools=[{"type": "web_search_20250305", "name": "web_search"}]
        ),
        "models": lambda: list(client.models.list()),
        "a batch": lambda: client.messages.batches.create(
            requests=[
                {
                    "custom_id": "1",
                    "params": {"model": MODEL, "messages": HI, "max_tokens": TOKENS},
                }
            ]
        ),
    },
)
