"""Who may ask: the checks before every request (docs/server.md, security)."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from edgeinfinite.runtime_py.server.error_shapes import problem_response
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.origins import Hosts, Origins, is_loopback, is_own, name_of
from edgeinfinite.runtime_py.server.page_files import FOLDER
from edgeinfinite.runtime_py.server.problems import ApiProblem


def is_open(path: str) -> bool:
    """Whether a path holds no text of anybody, and needs no key."""
    return path in ("/", "/health") or path.startswith(FOLDER)


class Guard:
    """ASGI middleware: refuses foreign names, foreign web pages and wrong keys.

    A web page that rebinds its own name to 127.0.0.1 (DNS rebinding) still sends its own name as
    Host, so a server on loopback answers to loopback's names only. Only HTTP/1.0 may leave Host
    out, which no browser speaks. A page of another origin sends its Origin along, also with the
    simple requests that browsers don't ask about first.
    """

    def __init__(self, app: ASGIApp, options: ServeOptions) -> None:
        self._app = app
        self._is_local = options.is_local
        self._hosts = Hosts(options.allow_host)
        self._origins = Origins(options.allow_origin)
        key = options.api_key
        self._key = None if key is None else key.strip().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope["path"], Headers(scope=scope))
            except ApiProblem as problem:
                await problem_response(problem, scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        host = headers.get("host", "")
        knows = "host" not in headers or is_loopback(name_of(host)) or self._hosts.knows(host)
        if self._is_local and not knows:
            raise ApiProblem(
                421,
                f"this server answers to localhost and 127.0.0.1 only, not to {host[:80]!r}; start "
                "it with --allow-host to let it",
            )
        origin = headers.get("origin")
        if origin is not None and not (is_own(origin, host) or self._origins.knows(origin)):
            raise ApiProblem(
                403,
                f"web pages of {origin[:80]!r} may not ask this server; start it with "
                "--allow-origin to let them",
                code="origin_not_allowed",
            )
        if self._key is not None and not is_open(path):
            given = _key_of(headers).encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._key):
                raise ApiProblem(
                    401,
                    "the API key is missing or wrong; send it as `Authorization: Bearer KEY`, or "
                    "as `x-api-key: KEY`",
                    code="invalid_api_key",
                )


def _key_of(headers: Headers) -> str:
    """The key that a client sends, in the header of OpenAI's clients or of Anthropic's."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    return headers.get("x-api-key", "").strip()
