"""Names and origins as browsers and proxies send them, compared by what they mean."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from edgeinfinite.errors import EdgeInfiniteError

ANY = "*"

_DEFAULT_PORTS = {"http": 80, "https": 443}
_OPAQUE = "null"
"""The origin of a page from a file or in a sandbox."""

_NAME = re.compile(r"(\*\.)?[^\s/@*:]+|[0-9a-f:.]+", re.IGNORECASE)


class Origins:
    """Which web pages may ask.

    Args:
        given: `http://host:port` in any letter case, with or without a slash at its end; `*` for
            all.

    Raises:
        EdgeInfiniteError: one of them is no origin.
    """

    def __init__(self, given: Iterable[str]) -> None:
        wanted = [one.strip() for one in given]
        self._any = ANY in wanted
        self._known = {_given_origin(one) for one in wanted if one != ANY}

    def __bool__(self) -> bool:
        return self._any or bool(self._known)

    def knows(self, origin: str) -> bool:
        """Whether pages of the `Origin` that a browser sends may ask."""
        return self._any or origin_of(origin) in self._known


class Hosts:
    """By which names a server may be asked for, besides this machine's own.

    Args:
        given: names without a port; `*.example.org` for all below a name, `*` for any.

    Raises:
        EdgeInfiniteError: one of them is no name.
    """

    def __init__(self, given: Iterable[str]) -> None:
        wanted = [_given_host(one.strip()) for one in given]
        self._any = ANY in wanted
        self._names = {name for name in wanted if not name.startswith("*")}
        self._ends = tuple(name[1:] for name in wanted if name.startswith("*."))

    def knows(self, host: str) -> bool:
        """Whether a `Host` header is one of them."""
        name = name_of(host)
        return self._any or name in self._names or (bool(name) and name.endswith(self._ends))


def is_loopback(host: str) -> bool:
    """Whether a name or address, without port or brackets, is this machine's own."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def name_of(host: str) -> str:
    """The name in a `Host` header, without port, brackets and last dot; empty for nonsense."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def origin_of(text: str) -> str | None:
    """An origin in one spelling; None for what is none.

    Letter case doesn't count, nor a default port, nor a slash at the end.
    """
    if text == _OPAQUE:
        return text
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname or ""
    if not scheme or not host or "@" in parts.netloc or "*" in host:
        return None
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + (
        "" if port in (None, _DEFAULT_PORTS.get(scheme)) else f":{port}"
    )


def is_own(origin: str, host: str) -> bool:
    """Whether a page's origin is the server itself, by the `Host` that it was asked for as."""
    known = origin_of(origin)
    scheme = "" if known is None else known.partition("://")[0]
    return scheme in _DEFAULT_PORTS and known == origin_of(f"{scheme}://{host}")


def _given_origin(text: str) -> str:
    origin = origin_of(text)
    if origin is None:
        raise EdgeInfiniteError(
            f"allow-origin is {text!r}, which is no origin; give scheme, name and port as in "
            "http://localhost:3000, or * for all web pages"
        )
    return origin


def _given_host(text: str) -> str:
    name = text.lower().rstrip(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if name != ANY and not _NAME.fullmatch(name):
        raise EdgeInfiniteError(
            f"allow-host is {text!r}, which is no name; give one without scheme, port and path, as "
            "in llm.example.org or *.example.org, or * for any"
        )
    return name
