"""Paths as clients join them: from an address with a slash at its end, or with one of their own."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_ADDRESS = re.compile(r"\Ahttps?://[^/]*/?", re.IGNORECASE)


class PlainPaths:
    """ASGI middleware: doubled slashes and one at the end change nothing.

    Nor does an address in front, as clients send it that ask through a proxy (RFC 9112, 3.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = _ADDRESS.sub("/", scope["path"])
            path = re.sub(r"/{2,}", "/", path).rstrip("/") or "/"
            if path != scope["path"]:
                scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)
