"""The page at `/`, and the reading of documents that it asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edgeinfinite.runtime_py.documents.document import Document
from edgeinfinite.runtime_py.documents.isolated import document_unless
from edgeinfinite.runtime_py.server.answers import Answers
from edgeinfinite.runtime_py.server.events import Reading, Started
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.page_files import file_routes
from edgeinfinite.runtime_py.server.patience import LARGEST_DOCUMENT, read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.routes import counted
from edgeinfinite.runtime_py.server.service import Service
from edgeinfinite.runtime_py.server.streaming import JobStream, cancelled_if_left, started_of
from edgeinfinite.runtime_py.session.token_array import token_array
from edgeinfinite.runtime_py.text.open_message import SEPARATOR, beginning_of_message


def page_routes(service: Service) -> list[Route]:
    """The routes that the page uses beside OpenAI's."""
    return [
        *file_routes(),
        Route("/documents", counted(service, "/documents", _document), methods=["POST"]),
    ]


async def _document(service: Service, request: Request) -> Response:
    """Reads a document and streams how it goes, one JSON object per line."""
    name = request.query_params.get("name", "")[:255] or "document.txt"
    system = request.query_params.get("system") or None
    body = await read_body(request, largest=LARGEST_DOCUMENT)
    job = service.jobs.start(partial(_read, service.answers, name, system, body))
    async with cancelled_if_left(request, job):
        document = await job.next()
        if not isinstance(document, Document):
            raise ApiProblem(499, "the client left")
        started = await started_of(job)
    return JobStream(job, _lines(job, started, document), "application/x-ndjson")


def _read(answers: Answers, name: str, system: str | None, body: bytes, job: Job) -> None:
    """Reads a document as the beginning of a message whose question isn't known yet."""
    document = document_unless(job.cancelled, name, body)
    if document is None:
        return
    job.emit(document)
    tokens = beginning_of_message(answers.tokenizer, document.text, first=True, system=system)
    answers.read(token_array(tokens), job)


async def _lines(job: Job, started: Started, document: Document) -> AsyncIterator[bytes]:
    yield _line(
        title=document.title,
        kind=document.kind,
        notes=document.notes,
        tokens=started.prompt_tokens,
        cached_tokens=started.cached_tokens,
    )
    try:
        async for happened in job.events():
            if isinstance(happened, Reading):
                yield _line(read=happened.tokens, compressions=happened.compressions)
    except ApiProblem as problem:
        yield _line(**problem.body())
    else:
        # A message that begins with this, and the question after it, continues what was read.
        yield _line(beginning=document.text.strip() + SEPARATOR)


def _line(**fields: object) -> bytes:
    return msgspec.json.encode(fields) + b"\n"
