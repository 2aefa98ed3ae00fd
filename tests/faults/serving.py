"""A server to be disturbed, and its client."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import openai
from faults.scenarios import Given


def served(given: Given) -> tuple[list[str], openai.OpenAI]:
    """The command line of a server that keeps its states in `states`, and its client."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return (
        ["serve", str(given.artifact), "--port", str(port), "--cache-dir", "states"],
        openai.OpenAI(
            base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=60
        ),
    )


def questions(given: Given, count: int) -> list[str]:
    """Texts that begin alike, each with an end of its own."""
    document = given.document.read_text()
    return [f"{document} And {number}?" for number in range(count)]


def is_running(pid: int) -> bool:
    """Whether a process hasn't ended, waited for or not."""
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def answer(client: openai.OpenAI, text: str, *, alive: Callable[[], bool] = lambda: True) -> str:
    """The server's greedy answer, as soon as it listens, while it is `alive`."""
    end = time.monotonic() + 60
    while True:
        try:
            chat = client.chat.completions.create(
                model="artifact",
                messages=[{"role": "user", "content": text}],
                temperature=0,
                max_tokens=8,
            )
        except openai.APIConnectionError:
            assert time.monotonic() < end and alive(), "the server didn't start"
            time.sleep(0.02)
        else:
            return str(chat.choices[0].message.content)


def states_in(folder: Path) -> list[Path]:
    """The saved states under their final names, not what a kill left of one half written.

    A file is written in a hidden folder beside its place, so the folder's name tells too.
    """
    found = folder.rglob("*.session")
    return [path for path in found if not _is_hidden(path.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
