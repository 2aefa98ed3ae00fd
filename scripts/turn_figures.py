"""Measures how long turn 50 of a conversation waits: by `previous_response_id`, by its history.

    python scripts/turn_figures.py ARTIFACT --json turns.json
    python scripts/turn_figures.py MODEL.gguf --python OTHER/bin/python --json turns-llama.cpp.json

Each message holds some 400 tokens of a story and a question; answers have 24 tokens. Both ways say
the same messages to a server that was just started. A GGUF file is for llama.cpp's server (`pip
install 'llama-cpp-python[server]'`, in an environment of its own: `--python`), which keeps what it
has read in memory. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from serve_figures import EXAMPLES, Server, llama, ours, serving, user

from edgeinfinite.rows_file import write_rows

TURNS = 50
CHARACTERS = 1_700
"""Of the story in a message: some 400 tokens of SmolLM2."""

_ANSWER = 24
_Said = tuple[float, int | None, int | None]
"""Seconds to the first piece, tokens of the prompt, those of them not read anew."""

_Turn = Callable[[str], _Said | None]
"""Says a message; None if this turn isn't asked."""


def messages(turns: int) -> Iterator[str]:
    """What the user says: a story, piece by piece."""
    story = (EXAMPLES / "draculas_guest.txt").read_text(encoding="utf-8")
    for turn in range(turns):
        part = story[CHARACTERS * turn : CHARACTERS * (turn + 1)]
        assert len(part) == CHARACTERS, "the story is too short for so many turns"
        yield f"{part}\n\nWho is spoken of here?"


def by_id(server: Server) -> _Turn:
    """Every turn goes on from the response before it."""
    model = server.client.models.list().data[0].id
    before: list[str] = []

    def turn(text: str) -> _Said:
        start = time.perf_counter()
        first = 0.0
        given: dict[str, Any] = {"previous_response_id": before[-1]} if before else {}
        for event in server.client.responses.create(
            model=model,
            input=text,
            max_output_tokens=_ANSWER,
            temperature=0,
            stream=True,
            **given,
        ):
            if event.type == "response.output_text.delta" and not first:
                first = time.perf_counter() - start
            if event.type in ("response.completed", "response.incomplete"):
                before.append(event.response.id)
                usage = event.response.usage
        return first, usage.input_tokens, usage.input_tokens_details.cached_tokens

    return turn


def resent(server: Server) -> _Turn:
    """Every turn sends the whole conversation."""
    history: list[dict[str, str]] = []
    return lambda text: _resent(server, history, text)


def _resent(server: Server, history: list[dict[str, str]], text: str) -> _Said:
    """Asks with the whole conversation and notes the answer in it."""
    history.append(user(text))
    seconds, answer, cached = server.ask(history, max_tokens=_ANSWER)
    history.append({"role": "assistant", "content": answer})
    return seconds, None, cached


def last_alone(server: Server, turns: int) -> _Turn:
    """Only the last turn is asked, with answers of as many words in its history."""
    history: list[dict[str, str]] = []

    def turn(text: str) -> _Said | None:
        if len(history) // 2 + 1 == turns:
            return _resent(server, history, text)
        history.extend([user(text), {"role": "assistant", "content": "word " * _ANSWER}])
        return None

    return turn


def talked(
    way: str, say: Callable[[Server], _Turn], command: list[str], port: int, turns: int
) -> list[dict[str, Any]]:
    """A row for every turn that is asked of a conversation with a server that is started for it."""
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(command, port, folder) as server,
    ):
        turn = say(server)
        for number, text in enumerate(messages(turns), 1):
            said = turn(text)
            if said is None:
                continue
            seconds, prompt, cached = said
            rows.append({"way": way, "turn": number, "ttft_s": round(seconds, 3)})
            rows[-1] |= {"prompt_tokens": prompt, "cached_tokens": cached}
            print(rows[-1], file=sys.stderr)
        rows[-1]["peak_mb"] = round(server.status("VmHWM"), 1)
    return rows


def main() -> None:
    """Measures every way and writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="an artifact, or a GGUF file for llama.cpp")
    parser.add_argument("--python", default=sys.executable, help="with llama_cpp.server")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    model, threads, turns = arguments.model, arguments.threads, arguments.turns
    if model.suffix == ".gguf":
        command, port = llama(arguments.python, model, threads, "ram")
        rows = talked("llama.cpp, history resent", resent, command, port, turns)
    else:
        rows = talked("previous_response_id", by_id, *ours(model, threads), turns)
        rows += talked("history resent", resent, *ours(model, threads), turns)
        # As if another conversation had made its states go: everything is read again.
        forgetful = ours(model, threads, "--cache-mb", "0")
        alone = partial(last_alone, turns=turns)
        rows += talked("history resent, nothing kept", alone, *forgetful, turns)
    write_rows(arguments.json, "turn_figures", [row | {"threads": threads} for row in rows])


if __name__ == "__main__":
    main()
