"""Problems in the words of the API whose route was asked."""

from __future__ import annotations

from starlette.responses import Response

from edgeinfinite.runtime_py.server.anthropic_messages.errors import error_of
from edgeinfinite.runtime_py.server.problems import ApiProblem

MESSAGES = "/v1/messages"


def is_message_path(path: str) -> bool:
    """Whether a path is of Anthropic's API."""
    return path == MESSAGES or path.startswith(MESSAGES + "/")


def problem_response(problem: ApiProblem, path: str) -> Response:
    """The answer to a request of a path."""
    if is_message_path(path):
        return problem.response(error_of(problem))
    return problem.response()
