"""`/openapi.json`: what every route takes and answers, in OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edgeinfinite.runtime_py.server.answer_schemas import answer_schemas
from edgeinfinite.runtime_py.server.guard import is_open
from edgeinfinite.runtime_py.server.openapi_apis import api_paths, in_own_words
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.patience import LARGEST_BODY, LARGEST_DOCUMENT
from edgeinfinite.runtime_py.server.request_schemas import REF, request_schemas
from edgeinfinite.version import __version__

_ABOUT = """OpenAI's routes, and Anthropic's, for one model whose state has a fixed size.

A request is normalised before it is judged: null is as good as nothing, and parameters that
change nothing are passed over. Every other parameter that isn't listed is refused with a 400
whose line names it, and so are fields that contradict each other. `docs/requests.md` has all of
it in words."""

_STATUSES = {
    400: "Something isn't understood or supported; `error.param` names it",
    401: "The API key is missing or wrong",
    403: "Web pages of this origin may not ask",
    404: "Another model's name, or no such file",
    408: "The body didn't arrive in time",
    413: "The body is too large",
    415: "The body is compressed",
    421: "The server doesn't answer to this name",
    500: "The server failed",
    503: "As many requests as can be held are at work or waiting; `Retry-After` says when to ask",
}
_GUARDED = (403, 421, 500)
_POSTED = (400, 404, 408, 413, 415, 503)

_Object = dict[str, Any]


def description_route(options: ServeOptions) -> Route:
    """The route of the description; it needs a key where the others do."""
    content = msgspec.json.encode(description(with_key=options.api_key is not None))

    async def endpoint(_: Request) -> Response:
        return Response(content, media_type="application/json")

    return Route("/openapi.json", endpoint, methods=["GET"])


def description(*, with_key: bool) -> _Object:
    """The description of a server, one that asks for a key or none."""
    components: _Object = {"schemas": {**request_schemas(), **answer_schemas()}}
    paths = _paths()
    if with_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path, methods in paths.items():
            for operation in methods.values():
                if not is_open(path):
                    operation["security"] = [{"key": []}]
                    operation["responses"]["401"] = _problem(401)
    in_own_words(paths)
    return {
        "openapi": "3.1.0",
        "info": {"title": "EdgeInfinite", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": components,
    }


def _paths() -> dict[str, dict[str, _Object]]:
    return {
        "/v1/chat/completions": {"post": _answering("chat", "ChatRequest", "ChatCompletion")},
        "/v1/completions": {"post": _answering("complete", "CompletionRequest", "Completion")},
        **api_paths(_responses),
        "/v1/models": {"get": _getting("models", "The one model", _json("ModelList"))},
        "/v1/models/{name}": {
            "get": _getting("model", "The model, if it has this name", _json("Model"), (404,))
            | {"parameters": [_parameter("name", "path", "The model's name", required=True)]}
        },
        "/documents": {"post": _documents()},
        "/health": {"get": _getting("health", "Whether the server is up", _json("Health"))},
        "/metrics": {"get": _getting("metrics", "Prometheus's format", _text("text/plain"))},
        "/openapi.json": {
            "get": _getting(
                "description", "This", {"application/json": {"schema": {"type": "object"}}}
            )
        },
        "/": {"get": _getting("page", "A page to read and ask with", _text("text/html"))},
        "/page/{name}": {
            "get": _getting(
                "pageFile",
                "The page's script and style",
                _text("text/javascript", "text/css"),
                (404,),
            )
            | {"parameters": [_parameter("name", "path", "The file's name", required=True)]}
        },
    }


def _answering(name: str, asked: str, answered: str) -> _Object:
    chunk = "ChatCompletionChunk" if answered == "ChatCompletion" else answered
    stream = {  # of no type: a tool may take each event for the value, or all of them together
        "description": f"Server-sent events: `data:` and a {chunk} each, an ErrorAnswer where the "
        "answer fails amid it, at last [DONE]. With `return_progress` chunks have "
        "`prompt_progress` while the prompt is read; without it, a comment comes every 15 seconds "
        "or rarer.",
    }
    return {
        "operationId": name,
        "summary": f"A {asked}, answered whole or with `stream` piece by piece",
        "requestBody": {
            "required": True,
            "description": f"At most {LARGEST_BODY:,} bytes.",
            "content": _json(asked),
        },
        "responses": _responses(
            _json(answered) | {"text/event-stream": {"schema": stream}}, _POSTED
        ),
    }


def _documents() -> _Object:
    lines = {
        "type": "string",
        "description": "Lines of JSON: a DocumentFound, DocumentReads, a DocumentBeginning; an "
        "ErrorAnswer where the reading fails.",
    }
    body = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "operationId": "readDocument",
        "summary": "Reads a document, so that questions about it are answered at once",
        "parameters": [
            _parameter("name", "query", "The file's name; its suffix is a hint"),
            _parameter("system", "query", "The system prompt of the questions to come"),
        ],
        "requestBody": {
            "required": True,
            "description": f"The file, at most {LARGEST_DOCUMENT:,} bytes.",
            "content": body,
        },
        "responses": _responses(
            {"application/x-ndjson": {"schema": lines}}, (400, 408, 413, 415, 503)
        ),
    }


def _getting(name: str, about: str, content: _Object, more: Sequence[int] = ()) -> _Object:
    return {"operationId": name, "summary": about, "responses": _responses(content, more)}


def _responses(content: _Object, statuses: Sequence[int]) -> _Object:
    problems = {str(status): _problem(status) for status in sorted({*_GUARDED, *statuses})}
    return {"200": {"description": "OK", "content": content}} | problems


def _problem(status: int) -> _Object:
    return {"description": _STATUSES[status], "content": _json("ErrorAnswer")}


def _json(name: str) -> _Object:
    return {"application/json": {"schema": {"$ref": REF.format(name=name)}}}


def _text(*media_types: str) -> _Object:
    return {media_type: {"schema": {"type": "string"}} for media_type in media_types}


def _parameter(name: str, place: str, about: str, *, required: bool = False) -> _Object:
    schema = {"type": "string"} | ({"minLength": 1} if required else {})
    return {
        "name": name,
        "in": place,
        "description": about,
        "required": required,
        "schema": schema,
    }
