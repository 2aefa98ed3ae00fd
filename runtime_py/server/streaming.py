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
        if not stream:
            return await _whole(job, writer, await started_of(job), keep)
        # A status that tells what is wrong, unless others are answered for so long before it.
        started: Started | None = None
        with suppress(TimeoutError):
            started = await asyncio.wait_for(started_of(job), _COMMENT_SECONDS)
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
    job: Job, writer: Writer, started: Started | None, keep: Keep | None
) -> AsyncIterator[bytes]:
    """What is said to the client; a comment wherever nothing else is said for long.

    Args:
        job: the answer's.
        writer: of the API.
        started: None where the job still waits for others.
        keep: see `Keep`.
    """
    began = said = time.monotonic()
    progress = "waiting for other requests"
    try:
        if started is not None:
            yield writer.first(started)
        while True:
            due = said + most_silent(said - began) - time.monotonic()
            try:
                happened = await asyncio.wait_for(job.next(), max(0.0, due))
            except TimeoutError:
                said = time.monotonic()
                yield comment(progress) if started is None else writer.silence(progress)
                continue
            told: bytes | None
            if happened is None:
                return
            if isinstance(happened, Started):
                started, told = happened, writer.first(happened)
            elif started is None:
                continue
            elif isinstance(happened, Finished):
                told = writer.last(started, happened)
                if keep is not None:
                    await keep(started, happened)
            elif isinstance(happened, Reading):
                progress = f"read {happened.tokens} of {started.prompt_tokens} tokens"
                told = writer.reading(started, happened)
            else:
                told = writer.part(happened)
            if told:
                said = time.monotonic()
                yield told
    except ApiProblem as problem:
        yield writer.failed(problem)


def most_silent(lasted: float) -> float:
    """Seconds after which a stream that has lasted so long and says nothing needs a comment."""
    return max(_COMMENT_SECONDS, _COMMENT_SHARE * lasted)


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
