"""OpenAI's routes: from a request to a job, and from its events to a response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from edgeinfinite.runtime_py.server.answers import Ask, Finished, Piece, Reading, Started
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.patience import read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem, json_response
from edgeinfinite.runtime_py.server.replies import DONE, Reply, comment, event
from edgeinfinite.runtime_py.server.requests import (
    ChatRequest,
    CompletionRequest,
    Settings,
    parse_chat,
    parse_completion,
)
from edgeinfinite.runtime_py.server.service import Service

_COMMENT_SECONDS = 15.0
"""At least, between two comments in a stream that has nothing to say yet."""

_COMMENT_SHARE = 1 / 60
"""Of the time that the stream has lasted: also at least between two comments. Clients bear so many
lines without data (go-openai: 300), however long the text is."""

_NO_CACHE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def api_routes(service: Service) -> list[Route]:
    """The routes that programs use."""
    posts = {"/v1/chat/completions": _chat, "/v1/completions": _completion}
    gets = {
        "/v1/models": _models,
        "/v1/models/{name:path}": _model,
        "/health": _health,
        "/metrics": _metrics,
    }
    return [
        *(
            Route(path, counted(service, path, post), methods=["POST"])
            for path, post in posts.items()
        ),
        *(Route(path, partial(get, service), methods=["GET"]) for path, get in gets.items()),
    ]


def counted(
    service: Service, path: str, handle: Callable[[Service, Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """A route that is counted by its status."""

    async def endpoint(request: Request) -> Response:
        try:
            response = await handle(service, request)
        except ApiProblem as problem:
            response = problem.response()
        service.metrics.requests.labels(path, response.status_code).inc()
        return response

    return endpoint


async def _chat(service: Service, request: Request) -> Response:
    asked: ChatRequest = parse_chat(await read_body(request))
    messages, continues = asked.plain_messages, asked.continues
    opens = asked.add_generation_prompt is not False
    ask = Ask(
        lambda tokenizer: tokenizer.encode_chat(messages, continues=continues, opens=opens),
        asked.sampling(service.sampling),
        asked.most_tokens,
        begins=not continues,
        stop=asked.stops,
        logprobs=asked.listed_logprobs,
        schema=asked.schema,
    )
    return await _answer(service, request, asked, ask, chat=True)


async def _completion(service: Service, request: Request) -> Response:
    asked: CompletionRequest = parse_completion(await read_body(request))
    ask = Ask(
        lambda tokenizer: tokenizer.encode_text(asked.prompt),
        asked.sampling(service.sampling),
        asked.most_tokens,
        begins=False,
        stop=asked.stops,
        logprobs=asked.logprobs,
    )
    return await _answer(service, request, asked, ask, chat=False)


async def _answer(
    service: Service, request: Request, asked: Settings, ask: Ask, *, chat: bool
) -> Response:
    service.check_model(asked.model)
    job = service.jobs.start(partial(service.answers.answer, ask))
    reply = service.reply(chat=chat, logprobs=ask.logprobs is not None)
    async with cancelled_if_left(request, job):
        started = await started_of(job)
        if not asked.stream:
            return await _whole(job, reply, started)
    return JobStream(job, _events(job, reply, started, asked), "text/event-stream")


async def started_of(job: Job) -> Started:
    """The job's first event.

    Raises:
        ApiProblem: the request can't be answered, or nobody waits for the answer.
    """
    started = await job.next()
    if not isinstance(started, Started):
        raise _left()
    return started


async def _whole(job: Job, reply: Reply, started: Started) -> Response:
    pieces: list[Piece] = []
    async for happened in job.events():
        if isinstance(happened, Piece):
            pieces.append(happened)
        elif isinstance(happened, Finished):
            return json_response(reply.whole(pieces, started, happened))
    raise _left()


def _left() -> ApiProblem:
    return ApiProblem(499, "the client left")  # which nobody reads


class JobStream(StreamingResponse):
    """A job's stream. Its end, also by a client that leaves before its start, ends the job."""

    def __init__(self, job: Job, content: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(content, media_type=media_type, headers=_NO_CACHE)
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._job.cancel()


async def _events(
    job: Job, reply: Reply, started: Started, asked: Settings
) -> AsyncIterator[bytes]:
    began = said = time.monotonic()
    try:
        yield reply.first()
        if asked.return_progress:
            yield reply.progress(started, Reading(started.cached_tokens, 0, 0.0))
        async for happened in job.events():
            if isinstance(happened, Piece):
                yield reply.piece(happened)
            elif isinstance(happened, Reading):
                if asked.return_progress:
                    yield reply.progress(started, happened)
                    continue
                now = time.monotonic()
                if not comment_is_due(now - began, now - said):
                    continue
                said = now
                yield comment(f"read {happened.tokens} of {started.prompt_tokens} tokens")
            elif isinstance(happened, Finished):
                yield reply.last(happened)
                if asked.stream_options.include_usage:
                    yield reply.usage(started, happened)
                yield DONE
    except ApiProblem as problem:
        yield event(problem.body())


def comment_is_due(lasted: float, silent: float) -> bool:
    """Whether a stream that has lasted so many seconds, silent the last ones, needs a comment."""
    return silent > max(_COMMENT_SECONDS, _COMMENT_SHARE * lasted)


@asynccontextmanager
async def cancelled_if_left(request: Request, job: Job) -> AsyncIterator[None]:
    """Cancels the job when the client closes its connection, or the block fails."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        job.cancel()
        job.emit(None)

    watcher = asyncio.create_task(watch())
    try:
        yield
    except BaseException:
        job.cancel()
        raise
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


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
