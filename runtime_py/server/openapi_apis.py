"""What `/openapi.json` says of the routes of the Responses and the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgeinfinite.runtime_py.server.error_shapes import is_message_path
from edgeinfinite.runtime_py.server.patience import LARGEST_BODY

_Object = dict[str, Any]

_IDS = [
    {
        "name": "id",
        "in": "path",
        "description": "The response's id",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }
]


_Responses = Callable[[_Object, Sequence[int]], _Object]
"""Makes the responses of an operation, from the content of a 200 and the statuses of refusals."""

_POSTS = {
    "/v1/responses": ("respond", "OpenAI's Responses API", "ResponseRequest", "A response"),
    "/v1/responses/input_tokens": (
        *("countResponse", "How many tokens its input has", "ResponseRequest"),
        "`input_tokens`",
    ),
    "/v1/messages": (
        *("message", "Anthropic's Messages API; errors in its own shape", "MessageRequest"),
        "A message",
    ),
    "/v1/messages/count_tokens": (
        *("countMessage", "How many tokens a request has", "MessageRequest"),
        "`input_tokens`",
    ),
}


def api_paths(responses: _Responses) -> dict[str, _Object]:
    """The paths."""
    stored = {
        "get": _of_id(responses, "response", "A stored response", "The response"),
        "delete": _of_id(responses, "forgetResponse", "Forgets a stored response", "`deleted`"),
    }
    items = _of_id(responses, "inputItems", "Its input, on one page", "`data`: the items")
    return {path: {"post": _posting(responses, *said)} for path, said in _POSTS.items()} | {
        "/v1/responses/{id}": stored,
        "/v1/responses/{id}/input_items": {"get": items},
    }


def in_own_words(paths: dict[str, _Object]) -> None:
    """Gives the Messages API the shape of its own errors; changed in place."""
    for path, methods in paths.items():
        if is_message_path(path):
            for operation in methods.values():
                for status, response in operation["responses"].items():
                    if status != "200":
                        own = {"$ref": "#/components/schemas/MessageErrorAnswer"}
                        response["content"] = _json(own)


def _posting(responses: _Responses, name: str, about: str, asked: str, answered: str) -> _Object:
    content = _json({"type": "object", "description": answered})
    if not name.startswith("count"):
        stream = {"description": "The API's own server-sent events."}
        content |= {"text/event-stream": {"schema": stream}}
    return {
        "operationId": name,
        "summary": about,
        "requestBody": {
            "required": True,
            "description": f"At most {LARGEST_BODY:,} bytes.",
            "content": _json({"$ref": f"#/components/schemas/{asked}"}),
        },
        "responses": responses(content, (400, 404, 408, 413, 415, 503)),
    }


def _of_id(responses: _Responses, name: str, about: str, answered: str) -> _Object:
    content = _json({"type": "object", "description": answered})
    return {
        "operationId": name,
        "summary": about,
        "parameters": _IDS,
        "responses": responses(content, (400, 404)),
    }


def passed_over(ignored: Sequence[str], neutral: Mapping[str, Sequence[Any]]) -> dict[str, _Object]:
    """JSON schemas of parameters that are passed over, null apart."""
    return {name: {"enum": [*values]} for name, values in neutral.items()} | {
        name: {} for name in sorted(ignored)
    }


def _json(schema: _Object) -> _Object:
    return {"application/json": {"schema": schema}}
