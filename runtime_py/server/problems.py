"""What a client did wrong, or must wait for, in the shape of OpenAI's errors."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from edgeinfinite.errors import printable


class ApiProblem(Exception):
    """An answer other than 200.

    Args:
        status: of HTTP.
        message: one line: what is wrong and what to do.
        param: the request's field at fault.
        code: a word for programs.
        retry_after: seconds after which asking again may help.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.message = printable(" ".join(message.split()))
        super().__init__(self.message)
        self.status = status
        self.param = param
        self.code = code
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """OpenAI's error object."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}

    def response(self, body: dict[str, Any] | None = None) -> Response:
        """The answer; `body` is the error object in another API's words."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return json_response(body or self.body(), self.status, headers)


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A value as a JSON response."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")
