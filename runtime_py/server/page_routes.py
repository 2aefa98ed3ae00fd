"""The page at `/`, and the reading of documents that it asks for."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from importlib import resources

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from edgeinfinite.runtime_py.server.answers import Reading, Started
from edgeinfinite.runtime_py.server.jobs import Job
from edgeinfinite.runtime_py.server.patience import LARGEST_DOCUMENT, read_body
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.routes import (
    JobStream,
    cancelled_if_left,
    counted,
    started_of,
)
from edgeinfinite.runtime_py.server.service import Service
from edgeinfinite.runtime_py.tokenizer import TextTokenizer

SEPARATOR = "\n\n"
"""Between a document and the first question about it, in one message of the user."""

_BEGINNINGS = ("A", "1?")
"""Of two questions. The tokens that both prompts have in common are those of the document."""


def page_routes(service: Service) -> list[Route]:
    """The routes that the page uses beside OpenAI's."""
    return [
        Route("/", _page(), methods=["GET"]),
        Route("/documents", counted(service, "/documents", _document), methods=["POST"]),
    ]


def document_tokens(tokenizer: TextTokenizer, text: str) -> Sequence[int]:
    """What a prompt with this document and any question begins with."""

    def prompt(question: str) -> list[int]:
        content = text + SEPARATOR + question
        if tokenizer.has_chat_template:
            return tokenizer.encode_chat([{"role": "user", "content": content}])
        return tokenizer.encode_text(content)

    first, second = map(prompt, _BEGINNINGS)
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((i for i, (one, other) in pairs if one != other), len(first))]


async def _document(service: Service, request: Request) -> Response:
    """Reads a document and streams how it goes, one JSON object per line."""
    text = _text(await read_body(request, largest=LARGEST_DOCUMENT))
    job = service.jobs.start(partial(_read, service, text))
    async with cancelled_if_left(request, job):
        started = await started_of(job)
    return JobStream(job, _lines(job, started, text), "application/x-ndjson")


def _read(service: Service, text: str, job: Job) -> None:
    service.answers.read(document_tokens(service.answers.tokenizer, text), job)


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ApiProblem(400, "the document isn't UTF-8 text; convert it first") from error
    if not text.strip():
        raise ApiProblem(400, "the document has no text")
    return text


async def _lines(job: Job, started: Started, text: str) -> AsyncIterator[bytes]:
    yield _line(tokens=started.prompt_tokens, cached_tokens=started.cached_tokens)
    try:
        async for happened in job.events():
            if isinstance(happened, Reading):
                yield _line(read=happened.tokens, compressions=happened.compressions)
    except ApiProblem as problem:
        yield _line(**problem.body())
    else:
        yield _line(text=text)


def _line(**fields: object) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


def _page() -> object:
    """The page, with a policy by which a browser runs only its own script and asks only us."""
    html = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    sources = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
            for content in re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.S)
        )
        for tag in ("script", "style")
    }
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; script-src {sources['script']}; "
        f"style-src {sources['style']}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }

    async def endpoint(_: Request) -> Response:
        return HTMLResponse(html, headers=headers)

    return endpoint
