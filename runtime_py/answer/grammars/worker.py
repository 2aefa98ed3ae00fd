"""The process in which grammars are compiled and stepped; started by `process`.

A grammar is a client's program: 1.5 kB of it may ask for gigabytes, inside a call of the library
that nothing can interrupt and whose own limits don't hold everywhere. So this process keeps the
tokenizer, and makes a child of itself for each grammar. The kernel ends the child whose call takes
too long or too much memory. It ends by itself when its other side closes the connection.

It runs as a script and imports nothing of this package, so that it starts at once.

Frames are a length of four bytes and so many bytes. Requests: `S` and a JSON object, the grammar;
`M`, the mask; `A` and a token id of four bytes. Answers: 0 and a result, or 1 and what is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

COMPILE_SECONDS = 10.0
STEP_SECONDS = 5.0
CPU_SECONDS = 120
"""Of one grammar's whole life."""

MEMORY = 512 * 2**20
"""Bytes of one grammar, beyond what the tokenizer takes."""

_LIMITS = {"max_lexer_states": 100_000}


def send(connection: socket.socket, content: bytes) -> None:
    """Sends a frame."""
    connection.sendall(struct.pack("<I", len(content)) + content)


def receive(connection: socket.socket) -> bytes | None:
    """The next frame; None when the other side has closed."""
    head = _exactly(connection, 4)
    return None if head is None else _exactly(connection, struct.unpack("<I", head)[0])


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main(control: socket.socket) -> None:
    """Takes a tokenizer, then a connection for every grammar, until the other side closes."""
    import llguidance

    first = receive(control)
    if first is None:
        return
    given = json.loads(first)
    try:
        tokenizer = llguidance.LLTokenizer(given["tokenizer"], eos_token=given["ends"])
    except BaseException as error:  # the library raises what it likes
        send(control, b"\1" + str(error).encode("utf-8", "replace"))
        return
    send(control, b"\0")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a child ended
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        with socket.socket(fileno=descriptors[0]) as connection:
            if os.fork() == 0:
                control.close()
                with suppress(OSError):
                    _serve(connection, tokenizer)
                os._exit(0)


def _serve(connection: socket.socket, tokenizer: Any) -> None:
    """One grammar: compiles it, and says what may follow what was accepted."""
    _limit()
    send(connection, struct.pack("<I", os.getpid()))
    matcher: Any = None
    while (asked := receive(connection)) is not None:
        kind, content = asked[:1], asked[1:]
        signal.setitimer(signal.ITIMER_REAL, COMPILE_SECONDS if kind == b"S" else STEP_SECONDS)
        result = b""
        try:
            if kind == b"S":
                matcher = compiled(tokenizer, json.loads(content))
            elif kind == b"A":
                matcher.consume_token(struct.unpack("<I", content)[0])
            stopped = bytes([matcher.is_stopped()])
            result = matcher.compute_bitmask() if kind == b"M" else stopped
            wrong = matcher.get_error() if matcher.is_error() else None
        except (ValueError, OverflowError, RecursionError) as error:
            wrong = str(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(connection, b"\0" + result if wrong is None else b"\1" + wrong.encode()[:100_000])


def compiled(tokenizer: Any, given: dict[str, Any]) -> Any:
    """The library's matcher of a grammar: `kind`, `source`, and `defaults` of JSON schemas."""
    import llguidance

    matcher, source = llguidance.LLMatcher, given["source"]
    if given["kind"] == "json_schema":
        grammar = matcher.grammar_from_json_schema(source, defaults=given["defaults"])
    elif given["kind"] == "regex":
        grammar = matcher.grammar_from_regex(source)
    else:
        grammar = matcher.grammar_from_lark(source)
    limits = llguidance._lib.LLParserLimits(**_LIMITS)
    return matcher(tokenizer, grammar, log_level=0, limits=limits)


def _limit() -> None:
    """From here on the kernel ends the process whose call takes too much."""
    import resource

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
