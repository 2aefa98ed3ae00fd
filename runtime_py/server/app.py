"""The application, and the server around it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.bodies import Bodies
from edgeinfinite.runtime_py.server.error_shapes import problem_response
from edgeinfinite.runtime_py.server.guard import Guard
from edgeinfinite.runtime_py.server.openapi import description_route
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.origins import Origins
from edgeinfinite.runtime_py.server.page_routes import page_routes
from edgeinfinite.runtime_py.server.paths import PlainPaths
from edgeinfinite.runtime_py.server.patience import PatientProtocol
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.routes import api_routes
from edgeinfinite.runtime_py.server.service import Service

_MOST_CONNECTIONS = 1_000
_SECONDS_TO_END = 3

_SWITCH_SECONDS = 0.0005
"""A thread that wants the interpreter asks for it after so long. Python's 5 ms add up: the loop
that answers /health stands in line with a thread for every document that is read."""


def build_app(service: Service) -> Starlette:
    """The ASGI application of a service."""
    options = service.options
    middleware = [Middleware(PlainPaths), Middleware(Guard, options=options), Middleware(Bodies)]
    if options.allow_origin:
        # First: browsers ask about a request without its key.
        middleware.insert(0, Middleware(_Cors, origins=Origins(options.allow_origin)))
    return Starlette(
        routes=[*api_routes(service), *page_routes(service), description_route(options)],
        middleware=middleware,
        exception_handlers={HTTPException: _no_route, Exception: _failed},
    )


class _Cors(CORSMiddleware):
    """Tells browsers that the pages of some origins may ask."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        super().__init__(app, allow_methods=["DELETE", "GET", "POST"], allow_headers=["*"])
        self._origins = origins

    def is_allowed_origin(self, origin: str) -> bool:
        return self._origins.knows(origin)


def bind(options: ServeOptions) -> socket.socket:
    """A listening socket.

    Raises:
        EdgeInfiniteError: the address isn't this machine's, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio sends small pieces at once where the protocol is named; else each waits 40 ms for the
    # client's delayed acknowledgement of the one before it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise EdgeInfiniteError(
            f"can't listen on {options.host} port {options.port}: {error.strerror or error}; give "
            "another --port or --host"
        ) from error
    return listener


def run(
    service: Service,
    listener: socket.socket,
    *,
    prepared: Callable[[uvicorn.Server], None] | None = None,
) -> None:
    """Serves until the process is told to end, then closes the service.

    Args:
        service: what is served.
        listener: from `bind`.
        prepared: called with the server before it starts; its `should_exit` ends it.
    """
    server = _Server(
        service,
        uvicorn.Config(
            build_app(service),
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        ),
    )
    if prepared is not None:
        prepared(server)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        server.run(sockets=[listener])
    finally:
        sys.setswitchinterval(interval)
        service.close()


class _Server(uvicorn.Server):
    """Ends answers before it waits for connections to end, which would wait for the answers."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.stop()
        await super().shutdown(sockets)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path == "/v1/embeddings":
        message = (
            "/v1/embeddings isn't supported: this is a model that writes text, and its states are "
            "no vectors to search by; ask an embedding model's server"
        )
        return ApiProblem(404, message, code="unsupported_route").response()
    message = f"{request.method} {request.url.path[:80]}: {error.detail}; see docs/server.md"
    response = problem_response(ApiProblem(error.status_code, message), request.url.path)
    response.headers.update(error.headers or {})
    if error.status_code == 405:  # a path may have a route for each of its methods
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """The methods of a path."""
    routes = request.app.router.routes
    path = next(one.path for one in routes if one.matches(request.scope)[0] is not Match.NONE)
    found: set[str] = set()
    for route in routes:
        if route.path == path:
            found |= route.methods or set()
    return found


async def _failed(request: Request, error: Exception) -> Response:
    problem = ApiProblem(500, f"the server failed: {type(error).__name__}: {error}")
    return problem_response(problem, request.url.path)
