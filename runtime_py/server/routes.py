"""The routes of OpenAI's completions, of the model, and for supervisors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.anthropic_messages import routes as anthropic_messages
from edgeinfinite.runtime_py.server.ask import Ask, Talk, Text
from edgeinfinite.runtime_py.server.error_shapes import problem_response
from edgeinfinite.runtime_py.server.openai_responses import routes as openai_responses
from edgeinfinite.runtime_py.server.patience import read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem, json_response
from edgeinfinite.runtime_py.server.replies import Reply
from edgeinfinite.runtime_py.server.requests import (
    ChatRequest,
    CompletionRequest,
    Settings,
    parse_chat,
    parse_completion,
)
from edgeinfinite.runtime_py.server.service import Service
from edgeinfinite.runtime_py.server.streaming import answered


def api_routes(service: Service) -> list[Route]:
    """The routes that programs use."""
    handlers: dict[tuple[str, str], _Handler] = {
        ("POST", "/v1/chat/completions"): _chat,
        ("POST", "/v1/completions"): _completion,
        ("POST", "/v1/responses"): openai_responses.create,
        ("POST", "/v1/responses/input_tokens"): openai_responses.count,
        ("GET", "/v1/responses/{id}"): openai_responses.retrieve,
        ("DELETE", "/v1/responses/{id}"): openai_responses.delete,
        ("GET", "/v1/responses/{id}/input_items"): openai_responses.list_input,
        ("POST", "/v1/messages"): anthropic_messages.create,
        ("POST", "/v1/messages/count_tokens"): anthropic_messages.count,
    }
    gets = {
        "/v1/models": _models,
        "/v1/models/{name:path}": _model,
        "/health": _health,
        "/metrics": _metrics,
    }
    return [
        *(
            Route(path, counted(service, path, handler), methods=[method])
            for (method, path), handler in handlers.items()
        ),
        *(Route(path, partial(get, service), methods=["GET"]) for path, get in gets.items()),
    ]


_Handler = Callable[[Service, Request], Awaitable[Response]]


def counted(
    service: Service, path: str, handle: _Handler
) -> Callable[[Request], Awaitable[Response]]:
    """A route that is counted by its status."""

    async def endpoint(request: Request) -> Response:
        try:
            response = await handle(service, request)
        except ApiProblem as problem:
            response = problem_response(problem, path)
        except EdgeInfiniteError as error:  # what a client's text brought about
            response = problem_response(ApiProblem(400, str(error)), path)
        service.metrics.requests.labels(path, response.status_code).inc()
        return response

    return endpoint


async def _chat(service: Service, request: Request) -> Response:
    asked: ChatRequest = parse_chat(await read_body(request))
    talk = Talk(
        tuple(asked.plain_messages),
        continues=asked.continues,
        opens=asked.add_generation_prompt is not False,
        tools=asked.declared,
        effort=asked.reasoning_effort,
        switches=asked.chat_template_kwargs,
    )
    ask = Ask(
        talk,
        asked.sampling(service.sampling),
        asked.most_tokens,
        stop=asked.stops,
        logprobs=asked.listed_logprobs,
        schema=asked.schema,
    )
    return await _answer(service, request, asked, ask, chat=True)


async def _completion(service: Service, request: Request) -> Response:
    asked: CompletionRequest = parse_completion(await read_body(request))
    ask = Ask(
        Text(asked.prompt),
        asked.sampling(service.sampling),
        asked.most_tokens,
        stop=asked.stops,
        logprobs=asked.logprobs,
    )
    return await _answer(service, request, asked, ask, chat=False)


async def _answer(
    service: Service, request: Request, asked: Settings, ask: Ask, *, chat: bool
) -> Response:
    service.check_model(asked.model)
    reply = Reply(
        service.model,
        service.fingerprint,
        chat,
        service.answers.tokenizer if ask.logprobs is not None else None,
        streamed=asked.stream,
        with_progress=asked.return_progress,
        with_usage=asked.stream_options.include_usage,
    )
    return await answered(service, request, ask, reply, stream=asked.stream)


async def _models(service: Service, _: Request) -> Response:
    return json_response({"object": "list", "data": [service.about()]})


async def _model(service: Service, request: Request) -> Response:
    try:
        service.check_model(request.path_params["name"])
    except ApiProblem as problem:
        return problem.response()
    return json_response(service.about())


async def _health(_: Service, __: Request) -> Response:
    return json_response({"status": "ok"})


async def _metrics(service: Service, _: Request) -> Response:
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
