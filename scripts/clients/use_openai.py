"""OpenAI's own client."""

from __future__ import annotations

from typing import Any

import openai
import pydantic
from tasks import MODEL, TOKENS, URL, run

client = openai.OpenAI(base_url=URL, api_key="none", max_retries=0)
HI: Any = [{"role": "user", "content": "Hi"}]


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


def chat(**more: Any) -> Any:
    """A chat completion."""
    return client.chat.completions.create(
        **({"model": MODEL, "messages": HI, "max_completion_tokens": TOKENS} | more)
    )


def goes_on() -> Any:
    """The answer is sent back as the client wrote it."""
    message = chat().choices[0].message
    again = [*HI, message.model_dump(), {"role": "user", "content": "And then?"}]
    return chat(messages=again).choices[0]


def helper() -> Any:
    """The client's own accumulation of a stream."""
    with client.chat.completions.stream(
        model=MODEL, messages=HI, max_tokens=40, response_format=Pet
    ) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0]


SCHEMA: Any = {
    "type": "object",
    "properties": {"dog": {"type": "boolean"}},
    "required": ["dog"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "function": {"name": "pet", "parameters": SCHEMA}}
FLAT: Any = {"type": "function", "name": "pet", "parameters": SCHEMA, "strict": True}
FILE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def calls(**more: Any) -> Any:
    """A message of one call, which the model has to make."""
    asked = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    return chat(max_completion_tokens=200, **asked, **more)


def called() -> Any:
    """The call's result goes back."""
    message = calls().choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rex"}
    return chat(tools=[TOOL], messages=[*HI, message.model_dump(exclude_none=True), result])


def piece_by_piece() -> Any:
    """The client's own accumulation of a call."""
    with client.chat.completions.stream(
        model=MODEL,
        messages=HI,
        max_tokens=200,
        tools=[openai.pydantic_function_tool(Pet)],
        tool_choice="required",
        parallel_tool_calls=False,
    ) as stream:
        return stream.get_final_completion().choices[0].message.tool_calls


def respond(**more: Any) -> Any:
    """A response."""
    given = {"model": MODEL, "input": "Hi", "max_output_tokens": TOKENS} | more
    return client.responses.create(**given)


def responded() -> Any:
    """The client's own accumulation of a response."""
    with client.responses.stream(
        model=MODEL, input="A pet", text_format=Pet, max_output_tokens=40
    ) as stream:
        return [event.type for event in stream][-1], stream.get_final_response()


def response_called() -> Any:
    """A call, and its result by the response's id."""
    asked = {"tools": [FLAT], "parallel_tool_calls": False}
    said = respond(tool_choice="required", max_output_tokens=200, **asked)
    (call,) = said.output
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rex"}
    return respond(input=[result], previous_response_id=said.id, **asked)


def kept() -> Any:
    """A stored response is read, its input listed, and it is deleted."""
    said = respond()
    again = client.responses.retrieve(said.id)
    items = list(client.responses.input_items.list(said.id))
    client.responses.delete(said.id)
    return again.output_text == said.output_text, items


run(
    "openai",
    {
        "chat": lambda: chat().choices[0],
        "chat, streamed, with usage": lambda: list(
            chat(stream=True, stream_options={"include_usage": True})
        )[-1],
        "chat, the client's accumulated stream": helper,
        "chat, the answer sent back": goes_on,
        "chat, progress of reading": lambda: list(
            chat(stream=True, extra_body={"return_progress": True})
        )[1],
        "chat, log-probabilities": lambda: chat(logprobs=True, top_logprobs=3).choices[0],
        "chat, a parsed answer": lambda: client.chat.completions.parse(
            model=MODEL, messages=HI, response_format=Pet, max_tokens=40
        ).choices[0],
        "completion": lambda: client.completions.create(
            model=MODEL, prompt="Once", max_tokens=TOKENS, logprobs=2
        ).choices[0],
        "completion, streamed": lambda: list(
            client.completions.create(model=MODEL, prompt="Once", max_tokens=TOKENS, stream=True)
        )[-1],
        "models": lambda: list(client.models.list()),
        "a model": lambda: client.models.retrieve(MODEL),
        "chat with a tool": lambda: chat(tools=[TOOL]),
        "chat with a picture": lambda: chat(messages=[{"role": "user", "content": [FILE]}]),
        "two answers": lambda: chat(n=2),
        "embeddings": lambda: client.embeddings.create(model=MODEL, input="Hi"),
        "chat, a call": lambda: calls().choices[0].message,
        "chat, a call, streamed": piece_by_piece,
        "chat, a call's result": called,
        "response": lambda: respond(instructions="Be brief.").output_text,
        "response, streamed": responded,
        "response, by the id of another": lambda: respond(previous_response_id=respond().id),
        "response, a parsed answer": lambda: (
            client.responses.parse(
                model=MODEL, input="A pet", text_format=Pet, max_output_tokens=40
            ).output_parsed
        ),
        "response, a call and its result": response_called,
        "response, kept and deleted": kept,
        "response, counted": lambda: client.responses.input_tokens.count(model=MODEL, input="Hi"),
        "response, a conversation": lambda: respond(conversation="conv_1"),
        "response, web search": lambda: respond(tools=[{"type": "web_search"}]),
        "response, in the background": lambda: respond(background=True),
    },
)
