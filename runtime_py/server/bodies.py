"""All bodies together have a limited size, so that many clients can't fill the memory."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edgeinfinite.runtime_py.server.patience import LARGEST_DOCUMENT
from edgeinfinite.runtime_py.server.problems import ApiProblem

MOST_BYTES = 256 * 2**20
"""Of the bodies of all requests that are open, whether whole or not."""

_RETRY_AFTER_S = 10


class Bodies:
    """ASGI middleware: counts what the bodies of open requests hold.

    A request whose body would take more than is left is sent away; a small one finds room nearly
    always, because those that wait for the rest of a large one are given up after a minute.

    Args:
        app: reads bodies whole.
        most: bytes of all; None is `MOST_BYTES`.
    """

    def __init__(self, app: ASGIApp, most: int | None = None) -> None:
        self._app = app
        self._most = most
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            # Nothing is kept of what is beyond the limit of one.
            size = min(len(message.get("body", b"")), LARGEST_DOCUMENT - held)
            if size and self._held + size > (MOST_BYTES if self._most is None else self._most):
                raise ApiProblem(
                    503,
                    "the server holds as many bytes of requests as it can; ask again later",
                    code="overloaded",
                    retry_after=_RETRY_AFTER_S,
                )
            held += size
            self._held += size
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._held -= held
