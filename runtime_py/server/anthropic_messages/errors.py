"""Errors in the words of Anthropic's API."""

from __future__ import annotations

from typing import Any

from edgeinfinite.runtime_py.server.problems import ApiProblem

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    503: "overloaded_error",
}


def error_of(problem: ApiProblem) -> dict[str, Any]:
    """The error object."""
    kind = _KINDS.get(problem.status)
    if kind is None:
        kind = "api_error" if problem.status >= 500 else "invalid_request_error"
    return {"type": "error", "error": {"type": kind, "message": problem.message}}
