"""The routes of OpenAI's Responses API."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from edgeinfinite.runtime_py.server.ask import Ask, Talk
from edgeinfinite.runtime_py.server.declared import Calls, with_calls
from edgeinfinite.runtime_py.server.events import Finished, Started
from edgeinfinite.runtime_py.server.messages import continues_answer
from edgeinfinite.runtime_py.server.openai_responses.items import input_items, messages_of
from edgeinfinite.runtime_py.server.openai_responses.reply import ResponseWriter
from edgeinfinite.runtime_py.server.openai_responses.request import (
    ResponseRequest,
    parse_response,
)
from edgeinfinite.runtime_py.server.openai_responses.stored import (
    ResponseStore,
    Stored,
    new_number,
    packed,
)
from edgeinfinite.runtime_py.server.patience import read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem, json_response
from edgeinfinite.runtime_py.server.service import Service
from edgeinfinite.runtime_py.server.streaming import answered
from edgeinfinite.runtime_py.text.chat_template import Message


async def create(service: Service, request: Request) -> Response:
    """`POST /v1/responses`."""
    asked = parse_response(await read_body(request))
    service.check_model(asked.model)
    before = await _before(service.responses, asked)
    talk, messages = talk_of(asked, before)
    ask = Ask(
        talk,
        asked.sampling(service.sampling),
        asked.most_tokens,
        logprobs=asked.listed_logprobs,
        schema=asked.schema,
    )
    writer = ResponseWriter(
        new_number(),
        _repeated(service, asked, ask),
        service.answers.tokenizer if ask.logprobs is not None else None,
        asked.namespaces,
    )

    async def keep(started: Started, finished: Finished) -> None:
        stored = Stored(
            f"resp_{writer.number}",
            service.fingerprint,
            writer.whole(started, finished),
            input_items(asked.input, writer.number),
            _setting(asked),
            _with_answer(messages, talk, writer),
            packed(finished.tokens),
        )
        await asyncio.to_thread(service.responses.put, stored)

    return await answered(
        service, request, ask, writer, stream=asked.stream, keep=keep if asked.store else None
    )


async def count(service: Service, request: Request) -> Response:
    """`POST /v1/responses/input_tokens`: how many tokens a request has."""
    asked = parse_response(await read_body(request))
    service.check_model(asked.model)
    talk, _ = talk_of(asked, await _before(service.responses, asked))
    tokens = await asyncio.to_thread(talk.encode, service.answers.tokenizer)
    return json_response({"object": "response.input_tokens", "input_tokens": len(tokens)})


async def retrieve(service: Service, request: Request) -> Response:
    """`GET /v1/responses/{id}`."""
    if request.query_params.get("stream") == "true":
        raise ApiProblem(400, "a stored response isn't streamed; leave stream out", param="stream")
    stored = await _stored(service, request)
    return json_response(stored.response)


async def delete(service: Service, request: Request) -> Response:
    """`DELETE /v1/responses/{id}`."""
    stored = await _stored(service, request)
    await asyncio.to_thread(service.responses.delete, stored.id)
    return json_response({"id": stored.id, "object": "response", "deleted": True})


async def list_input(service: Service, request: Request) -> Response:
    """`GET /v1/responses/{id}/input_items`, all on one page."""
    items = (await _stored(service, request)).items
    if request.query_params.get("order", "desc") == "desc":
        items = items[::-1]
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    empty = {"first_id": None, "last_id": None}
    return json_response({"object": "list", "data": items, "has_more": False} | empty | ends)


async def _stored(service: Service, request: Request) -> Stored:
    name = request.path_params["id"]
    stored = await asyncio.to_thread(service.responses.get, name)
    if stored is None:
        raise ApiProblem(404, f"Response with id '{name[:80]}' not found.")
    return stored


async def _before(store: ResponseStore, asked: ResponseRequest) -> Stored | None:
    name = asked.previous_response_id
    if name is None:
        return None
    stored = await asyncio.to_thread(store.get, name)
    if stored is None:
        raise ApiProblem(
            400,
            f"Previous response with id '{name[:80]}' not found: it has expired, made room for "
            "newer ones, or was never stored for this key and model; send the conversation instead",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return stored


def talk_of(asked: ResponseRequest, before: Stored | None) -> tuple[Talk, list[Message]]:
    """The prompt, and its messages without the instructions.

    Args:
        asked: the request.
        before: the response that it goes on from; None for none.

    Raises:
        ApiProblem: 400; an item or a tool isn't understood.
    """
    earlier: list[Message] = [] if before is None else list(before.messages)
    news = messages_of(asked.input, earlier)
    messages = [*earlier, *news]
    instructions: list[Message] = []
    if asked.instructions:
        instructions = [{"role": "system", "content": asked.instructions}]
    whole = (*instructions, *messages)
    if not messages:
        raise ApiProblem(400, "input is empty; give a text or a list of items", param="input")
    # An answer goes on only with what this request itself gives as its beginning.
    continues = bool(news) and continues_answer(whole, None, None)
    if continues and asked.schema is not None:
        raise ApiProblem(
            400,
            "text.format holds for a whole answer, and the last message begins one; leave that "
            "message or text.format out",
            param="text.format",
        )
    # What instructions and tools said at first can't be taken back from a state.
    same = before is not None and news and before.setting == _setting(asked)
    read = before.read if before is not None and same else ()
    talk = Talk(
        whole,
        continues=continues,
        tools=asked.declared,
        effort=asked.reasoning.effort,
        read=read,
        news=tuple(news),
    )
    return talk, messages


def _setting(asked: ResponseRequest) -> dict[str, Any]:
    return {
        "instructions": asked.instructions or "",
        "tools": asked.tools,
        "effort": asked.reasoning.effort,
    }


def _with_answer(
    messages: list[Message], talk: Talk, writer: ResponseWriter
) -> list[dict[str, Any]]:
    """The conversation that goes on, with the answer as its last message."""
    text, calls, known = "", [], Calls()
    for item in writer.output:
        if item["type"] == "message":
            text += item["content"][0]["text"]
        elif item["type"] == "function_call" and item["status"] == "completed":
            with suppress(ApiProblem):  # of a model that isn't held to JSON
                name = ".".join(filter(None, (item.get("namespace"), item["name"])))
                call = known.made(item["call_id"], name, item["arguments"], "output")
                calls.append(call)
    kept: list[dict[str, Any]] = [dict(message) for message in messages]
    if talk.continues:
        text = kept.pop()["content"] + text
    return [*kept, dict(with_calls(text, calls))]


def _repeated(service: Service, asked: ResponseRequest, ask: Ask) -> dict[str, Any]:
    form: dict[str, Any] = {"type": asked.form.type}
    if asked.form.type == "json_schema":
        form |= {"name": asked.form.name, "schema": asked.form.schema, "strict": True}
    return {
        "background": False,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "metadata": asked.metadata,
        "model": service.model,
        "parallel_tool_calls": asked.parallel_tool_calls,
        "previous_response_id": asked.previous_response_id,
        "reasoning": {"effort": asked.reasoning.effort, "summary": None},
        "service_tier": "default",
        "store": asked.store,
        "temperature": ask.sampling.temperature,
        "text": {"format": form, "verbosity": "medium"},
        "tool_choice": asked.tool_choice,
        "tools": asked.tools,
        "top_logprobs": asked.top_logprobs or 0,
        "top_p": ask.sampling.top_p,
        "truncation": "disabled",
    }
