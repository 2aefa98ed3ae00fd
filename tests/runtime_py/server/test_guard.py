"""Keys, names and origins."""

from __future__ import annotations

import http.client
import socket

import openai
import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.app import bind
from edgeinfinite.runtime_py.server.options import ServeOptions


def status(server, path: str = "/v1/models", method: str = "GET", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path, headers=headers)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_key_is_asked_for_everywhere_but_on_the_page_and_in_health(serve):
    with serve(api_key="secret") as server:
        assert [model.id for model in server.client("secret").models.list()] == ["tiny"]
        with pytest.raises(openai.AuthenticationError, match="missing or wrong"):
            server.client("secre").models.list()
        for path in ("/v1/models", "/metrics", "/documents", "/nothing"):
            assert status(server, path) == 401
        assert status(server, Authorization="Basic secret") == 401
        assert status(server, Authorization="Bearer \xe4\xf6") == 401
        assert status(server, "/") == status(server, "/health") == 200
        assert status(server, "/page/main.js") == 200
        assert status(server, "/page/nothing.js") == 404
        for path in ("/page", "/page/../v1/models", "/page/%2e%2e/v1/models", "/pages/main.js"):
            assert status(server, path) in (401, 404)


def test_an_address_that_others_can_reach_needs_a_key():
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(EdgeInfiniteError, match="give --api-key"):
            ServeOptions(host=host)
        assert not ServeOptions(host=host, api_key="secret").is_local
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert ServeOptions(host=host).is_local
    with pytest.raises(EdgeInfiniteError, match="the API key is empty"):
        ServeOptions(host="0.0.0.0", api_key=" ")


def test_a_web_page_that_rebinds_its_name_is_refused(server):
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "[", ""):
        assert status(server, Host=host) == status(server, "/page/main.js", Host=host) == 421
    for host in ("localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"):
        assert status(server, Host=host) == 200


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /health HTTP/1.0", b"200"),
        (b"GET /health HTTP/1.0\r\nHost: evil.example", b"421"),
        (b"GET /health HTTP/1.1", b"400"),  # which must name one
        (b"GET http://localhost:%d/health HTTP/1.1\r\nHost: localhost", b"200"),
        (b"GET HTTP://localhost/v1/nothing HTTP/1.1\r\nHost: localhost", b"404"),
        (b"GET http://localhost/health HTTP/1.1\r\nHost: evil.example", b"421"),
    ],
)
def test_requests_of_old_clients_and_through_proxies_are_taken(server, head, code):
    if b"%d" in head:
        head %= server.port
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(head + b"\r\nConnection: close\r\n\r\n")
        assert client.recv(99).split()[1] == code


def test_web_pages_of_other_origins_are_refused_unless_they_are_allowed(serve, server):
    own = f"127.0.0.1:{server.port}"
    assert status(server, Host=own, Origin=f"http://{own}") == 200
    for origin in (
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{server.port + 1}",
        "http://[",
    ):
        assert status(server, Host=own, Origin=origin) == 403
    friend = "http://localhost:3000"
    with serve(allow_origin=(friend,), api_key="secret") as other:
        asks = {"Access-Control-Request-Method": "POST", "Origin": friend}
        assert status(other, "/v1/chat/completions", "OPTIONS", **asks) == 200
        assert status(other, Origin=friend, Authorization="Bearer secret") == 200
        assert status(other, Origin=friend) == 401
        foreign = asks | {"Origin": "http://evil.example"}
        assert status(other, "/v1/chat/completions", "OPTIONS", **foreign) == 400


def test_a_tunnels_name_is_answered_to_where_it_is_allowed(serve):
    with serve(allow_host=("llm.Example.org", "*.tunnel.example")) as server:
        for host in ("llm.example.org", "LLM.example.org:443", "a.b.tunnel.example", "localhost"):
            assert status(server, Host=host) == 200
        for host in ("example.org", "tunnel.example", "llm.example.org.evil.example", "["):
            assert status(server, Host=host) == 421
        origin = "https://llm.example.org"
        assert status(server, Host="llm.example.org", Origin=origin) == 200
        assert status(server, Host="llm.example.org:443", Origin=origin) == 200
        assert status(server, Host="llm.example.org", Origin="https://evil.example") == 403
    with serve(allow_host=("*",)) as server:
        assert status(server, Host="anything.example") == 200


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("*", "http://anywhere.example"),
        ("*", "null"),
        ("http://localhost:3000/", "http://localhost:3000"),
        ("HTTP://LocalHost:3000", "http://localhost:3000"),
        ("https://app.example:443", "https://app.example"),
        ("http://app.example", "http://app.example:80"),
        ("app://obsidian.md", "app://obsidian.md"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ("null", "null"),
    ],
)
def test_an_allowed_origin_is_compared_as_an_origin(serve, given, origin):
    with serve(allow_origin=(given,)) as server:
        asks = {"Access-Control-Request-Method": "POST", "Origin": origin}
        assert status(server, "/v1/chat/completions", "OPTIONS", **asks) == 200
        assert status(server, Origin=origin) == 200
        if given != "*":
            other = asks | {"Origin": "http://other.example"}
            assert status(server, "/v1/chat/completions", "OPTIONS", **other) == 400
            assert status(server, Origin="http://other.example") == 403


@pytest.mark.parametrize(
    "options",
    [
        {"allow_origin": ("localhost:3000/x",)},
        {"allow_origin": ("http://localhost:3000/page",)},
        {"allow_origin": ("http://localhost:port",)},
        {"allow_origin": ("http://*.example.org",)},
        {"allow_host": ("https://llm.example.org",)},
        {"allow_host": ("llm.example.org:443",)},
        {"allow_host": ("a*",)},
        {"allow_host": ("",)},
    ],
)
def test_what_is_no_origin_and_no_name_is_refused_at_the_start(options):
    with pytest.raises(EdgeInfiniteError, match=r"allow-(origin|host) is .* is no (origin|name)"):
        ServeOptions(**options)


def test_a_taken_port_is_one_line(server):
    with pytest.raises(EdgeInfiniteError, match="can't listen on"):
        bind(ServeOptions(port=server.port))
