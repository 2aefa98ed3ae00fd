"""The routes of Anthropic's Messages API."""

from __future__ import annotations

import asyncio
import secrets

from starlette.requests import Request
from starlette.responses import Response

from edgeinfinite.runtime_py.server.anthropic_messages.blocks import messages_of
from edgeinfinite.runtime_py.server.anthropic_messages.reply import MessageWriter
from edgeinfinite.runtime_py.server.anthropic_messages.request import (
    DEFAULT_EFFORT,
    MessageRequest,
    parse_message,
)
from edgeinfinite.runtime_py.server.ask import Ask, Talk
from edgeinfinite.runtime_py.server.messages import continues_answer
from edgeinfinite.runtime_py.server.patience import read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem, json_response
from edgeinfinite.runtime_py.server.service import Service
from edgeinfinite.runtime_py.server.streaming import answered


async def create(service: Service, request: Request) -> Response:
    """`POST /v1/messages`."""
    asked = parse_message(await read_body(request))
    service.check_model(asked.model)
    assert asked.max_tokens is not None
    ask = Ask(
        talk_of(asked),
        asked.sampling(service.sampling),
        asked.max_tokens,
        stop=asked.stops,
        schema=asked.schema,
    )
    writer = MessageWriter(secrets.token_hex(12), service.model)
    return await answered(service, request, ask, writer, stream=asked.stream)


async def count(service: Service, request: Request) -> Response:
    """`POST /v1/messages/count_tokens`."""
    asked = parse_message(await read_body(request), counts=True)
    service.check_model(asked.model)
    tokens = await asyncio.to_thread(talk_of(asked).encode, service.answers.tokenizer)
    return json_response({"input_tokens": len(tokens)})


def talk_of(asked: MessageRequest) -> Talk:
    """The prompt.

    Raises:
        ApiProblem: 400; a message or a tool isn't understood.
    """
    messages = messages_of(asked.system, asked.messages)
    continues = continues_answer(messages, None, None)
    if continues and asked.schema is not None:
        raise ApiProblem(
            400,
            "output_config.format holds for a whole answer, and the last message begins one; leave "
            "that message or output_config.format out",
            param="output_config.format",
        )
    return Talk(
        tuple(messages),
        continues=continues,
        tools=asked.declared,
        effort=asked.effort,
        usual_effort=DEFAULT_EFFORT,
    )
