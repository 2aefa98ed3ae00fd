"""From a job's events to a response, whole or as server-sent events, in any API's words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from edgeinfinite.runtime_py.server.ask import Ask
from edgeinfinite.runtime_py.server.events import Finished, Reading, Started
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.problems import ApiProblem, json_response
from edgeinfinite.runtime_py.server.service import Service

_COMMENT_SECONDS = 15.0
"""At least, between two comments in a stream that has nothing to say yet."""

_COMMENT_SHARE = 1 / 60
"""Of the time that the stream has lasted: also at least between two comments. Clients bear so many
lines without data (go-openai: 300), however long the text is."""

_NO_CACHE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_LINE_ENDS = {sign.encode(): f"\\u{ord(sign):04x}".encode() for sign in "\x85\u2028\u2029"}
"""Characters that end a line for clients that split text by Unicode's rules."""


class Writer(Protocol):
    """Writes one answer in an API's words; each API has its own."""

    def first(self, started: Started) -> bytes:
        """The events before the first part."""

    def reading(self, started: Started, reading: Reading) -> bytes | None:
        """An event for every step of reading; None where the API has none."""

    def part(self, happened: object) -> bytes:
        """The events of a part of the answer. Called also where nothing is streamed."""

    def last(self, started: Started, finished: Finished) -> bytes:
        """The events at the end."""

    def whole(self, started: Started, finished: Finished) -> dict[str, Any]:
        """The answer in one object."""

    def failed(self, problem: ApiProblem) -> bytes:
        """The event that ends a stream which fails."""

    def silence(self, text: str) -> bytes:
        """What keeps a connection alive while a text is read; `text` says how far it is."""


Keep = Callable[[Started, Finished], Awaitable[None]]
"""What is done with an answer before its client is told that it has ended."""


def event(content: Any, name: str = "") -> bytes:
    """A value as a server-sent event, one line in whatever way a client splits lines."""
    data = msgspec.json.encode(content)
    for sign, escape in _LINE_ENDS.items():
        data = data.replace(sign, escape)
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """One line that clients skip; it keeps a connection alive in a long prefill."""
    return f": {text}\n".encode()


async def answered(
    service: Service,
    request: Request,
    ask: Ask,
    writer: Writer,
    *,
    stream: bool,
    keep: Keep | None = None,
) -> Response:
    """Answers an ask.

    Raises:
        ApiProblem: it can't be answered.
    """
    job = service.jobs.start(partial(service.answers.answer, ask))
    async with cancelled_if_left(request, job):
        started = await started_of(job)
        if not stream:
            return await _whole(job, writer, started, keep)
    return JobStream(job, _events(job, writer, started, keep), "text/event-stream")


async def started_of(job: Job) -> Started:
    """The job's first event.

    Raises:
        ApiProblem: the request can't be answered, or nobody waits for the answer.
    """
    started = await job.next()
    if not isinstance(started, Started):
        raise _left()
    return started


async def _whole(job: Job, writer: Writer, started: Started, keep: Keep | None) -> Response:
    async for happened in job.events():
        if isinstance(happened, Finished):
            whole = writer.whole(started, happened)
            if keep is not None:
                await keep(started, happened)
            return json_response(whole)
        if not isinstance(happened, Reading):
            writer.part(happened)
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
    job: Job, writer: Writer, started: Started, keep: Keep | None
) -> AsyncIterator[bytes]:
    began = said = time.monotonic()
    try:
        yield writer.first(started)
        async for happened in job.events():
            if isinstance(happened, Finished):
                last = writer.last(started, happened)
                if keep is not None:
                    await keep(started, happened)
                yield last
            elif isinstance(happened, Reading):
                told = writer.reading(started, happened)
                if told is not None:
                    yield told
                    continue
                now = time.monotonic()
                if not comment_is_due(now - began, now - said):
                    continue
                said = now
                yield writer.silence(f"read {happened.tokens} of {started.prompt_tokens} tokens")
            elif part := writer.part(happened):
                yield part
    except ApiProblem as problem:
        yield writer.failed(problem)


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
