"""What `edgeinfinite serve` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.origins import Hosts, Origins, is_loopback


@dataclass(frozen=True)
class ServeOptions:
    """See `edgeinfinite serve --help`.

    Args:
        host: address to listen on; any other than loopback needs `api_key`.
        port: 0 takes a free one.
        api_key: what clients must send as `Authorization: Bearer KEY`; None asks for none.
        cache_mb: megabytes of saved states in memory; 0 keeps none.
        cache_dir: folder for saved states that outlive the server; None keeps none.
        cache_dir_mb: megabytes of saved states in that folder.
        responses_mb: megabytes of stored responses, which `previous_response_id` goes on from.
        responses_days: after which a stored response has expired.
        parallel: requests that are answered at once; each holds one state.
        waiting: further requests that may wait; those beyond get a 503.
        allow_origin: web pages of other origins that may ask this server, as `http://host:port`;
            `*` for all.
        allow_host: further names by which a server on loopback may be asked for, such as a
            tunnel's; `*` for any.

    Raises:
        EdgeInfiniteError: a number is out of range, a public address has no key, or a name is none.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    api_key: str | None = None
    cache_mb: int = 512
    cache_dir: Path | None = None
    cache_dir_mb: int = 4096
    responses_mb: int = 256
    responses_days: int = 30
    parallel: int = 4
    waiting: int = 64
    allow_origin: tuple[str, ...] = ()
    allow_host: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise EdgeInfiniteError(f"port is {self.port}; give 0 to 65535 (0 takes a free one)")
        for name, least in (
            ("cache_mb", 0),
            ("cache_dir_mb", 0),
            ("responses_mb", 0),
            ("responses_days", 0),
            ("parallel", 1),
            ("waiting", 0),
        ):
            value = getattr(self, name)
            if value < least:
                option = name.replace("_", "-")
                raise EdgeInfiniteError(f"{option} is {value}; give at least {least}")
        if self.api_key is not None and not self.api_key.strip():
            raise EdgeInfiniteError("the API key is empty; give one, or leave --api-key out")
        if not self.is_local and self.api_key is None:
            raise EdgeInfiniteError(
                f"{self.host} can be reached from other machines; give --api-key, or listen on "
                "127.0.0.1"
            )

        Origins(self.allow_origin)
        Hosts(self.allow_host)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)
