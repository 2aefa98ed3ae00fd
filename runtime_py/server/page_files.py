"""The page's own files, as they are in the folder `page`, and the policy under which they run."""

from __future__ import annotations

from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = "/page/"
"""Where the page's script and style stand. They hold no text of anybody."""

_PAGE = "page.html"

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}

_POLICY = (
    # Only this server's files run, and no text becomes markup or script, by whatever mistake.
    "default-src 'none'; connect-src 'self'; img-src data:; script-src 'self'; style-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def file_routes() -> list[Route]:
    """The routes of the page and of what it is made of."""
    files = _files()

    async def page(_: Request) -> Response:
        return _answer(_PAGE, files[_PAGE])

    async def part(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files or name == _PAGE:
            raise HTTPException(404)
        return _answer(name, files[name])

    return [
        Route("/", page, methods=["GET"]),
        Route(FOLDER + "{name}", part, methods=["GET"]),
    ]


def _files() -> dict[str, bytes]:
    """By name. They are read once: what is served is what was there at the start."""
    folder = resources.files(__package__).joinpath("page")
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }


def _answer(name: str, content: bytes) -> Response:
    return Response(content, headers=_HEADERS, media_type=_TYPES[name.rpartition(".")[2]])
