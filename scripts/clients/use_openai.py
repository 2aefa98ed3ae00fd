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


TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FILE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

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
        "responses": lambda: client.responses.create(model=MODEL, input="Hi"),
    },
)
